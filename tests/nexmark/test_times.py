"""When events happen."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tests.workloads.strategies import few, workloads

from penstock.errors import InputError
from penstock.nexmark.times import Clock, FixedRate, WorkloadClock
from penstock.workloads.registry import make_workload
from penstock.workloads.workload import Workload


@pytest.mark.parametrize("rate", [0.5, 200.0, 1000.0, 10_000.0, 46_000.0])
def test_a_fixed_rate_is_a_workload_that_never_changes(rate: float) -> None:
    numbers = np.arange(1, 2000)
    following = WorkloadClock(Workload.of_steps([rate], step_s=10_000)).after_us(numbers)
    assert np.abs(FixedRate(rate).after_us(numbers) - following).max() <= 1


@few
@given(workloads())
def test_as_many_events_by_each_second_as_the_workload_offers(load: Workload) -> None:
    assume(0 < load.total_records < 200_000)
    times_s = WorkloadClock(load).after_us(np.arange(1, load.total_records + 1)) / 1e6
    seconds = np.linspace(0, load.duration_s, 7)
    # times are cut to a microsecond, so an event may seem to be there that much earlier
    by_then = np.searchsorted(times_s, seconds, side="right")
    assert (by_then >= [load.count(0, at) for at in seconds]).all()
    assert (by_then <= [load.count(0, at + 2e-6) + 1 for at in seconds]).all()
    assert (np.diff(times_s) >= 0).all()


def test_at_its_end_a_workload_begins_again() -> None:
    load = make_workload("cosine", 3) * 1e-4
    clock, lap = WorkloadClock(load), load.total_records
    once = clock.after_us(np.arange(1, lap + 1))
    assert np.array_equal(clock.after_us(np.arange(lap + 1, 2 * lap + 1)), once + 180_000_000)


@few
@given(st.integers(1, 10**9), st.integers(1, 50), st.integers(0, 49))
def test_a_time_does_not_depend_on_its_neighbours(first: int, count: int, which: int) -> None:
    numbers = np.arange(first, first + count)
    clocks: list[Clock] = [FixedRate(333.3), WorkloadClock(make_workload("random", 5) * 1e-3)]
    for clock in clocks:
        one = numbers[which % count :][:1]
        assert clock.after_us(one)[0] == clock.after_us(numbers)[which % count]


@pytest.mark.parametrize("rate", [0.0, -1.0, 1e12, float("nan"), float("inf")])
def test_rates_that_no_stream_has(rate: float) -> None:
    with pytest.raises(InputError, match=r"rate: must be from 0\.01 to 1e9 events/s, got"):
        FixedRate(rate)


def test_a_workload_without_events() -> None:
    with pytest.raises(InputError, match="at least one event"):
        WorkloadClock(Workload.of_steps([0]))
