"""Waiting for service times, with a clock that only moves when told."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.demos.support.emulated_service import EmulatedService
from penstock.errors import InputError


class Clock:
    """Time that passes by sleeping, or by working."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


IDS = pa.array([3, 4, 9])


def lasting(service: EmulatedService, clock: Clock, work_s: float) -> None:
    with service.emulate("recognise", IDS, clock, clock.sleep):
        clock.now += work_s


def test_a_chunk_lasts_as_long_as_its_records_take() -> None:
    service, clock = EmulatedService(service_s=0.3, scv=0.1), Clock()
    lasting(service, clock, work_s=0.05)
    assert clock.now - 100 == pytest.approx(service.times("recognise", IDS).sum())
    assert len(clock.slept) == 1


def test_work_that_takes_longer_is_not_made_longer() -> None:
    clock = Clock()
    lasting(EmulatedService(service_s=0.3), clock, work_s=60)
    assert clock.now == 160


def test_without_a_service_time_nothing_waits() -> None:
    clock = Clock()
    lasting(EmulatedService(), clock, work_s=0.05)
    assert clock.slept == []


def test_a_failure_is_not_waited_for() -> None:
    clock = Clock()
    with (
        pytest.raises(ZeroDivisionError),
        EmulatedService(service_s=5).emulate("recognise", IDS, clock, clock.sleep),
    ):
        _ = 1 / 0
    assert clock.slept == []


def test_times_vary_as_told_and_by_operator() -> None:
    ids = pa.array(range(50_000))
    service = EmulatedService(service_s=0.2, scv=0.1)
    one, other = service.times("parse", ids), service.times("store", ids)
    assert one.mean() == pytest.approx(0.2, rel=0.02)
    assert one.var() / one.mean() ** 2 == pytest.approx(0.1, rel=0.1)
    assert abs(np.corrcoef(one, other)[0, 1]) < 0.03


@pytest.mark.parametrize("wrong", [{"service_s": -1.0}, {"scv": -0.5}, {"service_s": float("nan")}])
def test_what_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(InputError, match=next(iter(wrong))):
        EmulatedService(**wrong)
