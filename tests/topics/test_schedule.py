"""When records are due, handed out as time goes by."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.topics.schedule import schedule_of
from penstock.workloads.arrivals import arrivals
from penstock.workloads.workload import Workload

LOAD = Workload.of_points([0, 10, 10, 20], [0, 100, 7, 3.3])
KINDS = ("deterministic", "poisson", "bursty")


def all_times(kind: str) -> np.ndarray:
    """Every record at once, from the arrival processes themselves."""
    return np.concatenate(list(arrivals(kind, LOAD, seed=5)))


@pytest.mark.parametrize("kind", KINDS)
def test_however_time_is_cut_the_same_records_come(kind: str) -> None:
    expected = all_times(kind)
    for step_s, most in ((0.3, 7), (20.0, 10_000), (1.7, 1)):
        schedule = schedule_of(LOAD, kind, seed=5)
        taken: list[float] = []
        for t_s in np.append(np.arange(0, 20, step_s), 20.0):
            while len(times := schedule.take(float(t_s), most)):
                assert len(times) <= most and times[-1] <= t_s
                taken += times.tolist()
            assert len(taken) == np.searchsorted(expected, t_s + 1e-9, side="right")
        assert taken == pytest.approx(expected.tolist(), abs=1e-9)
        assert not schedule.has_more(20.0) and schedule.next_s() == float("inf")


@given(st.floats(0, 25), st.integers(0, 50))
def test_evenly_spaced_records_are_counted_exactly(t_s: float, skipped: int) -> None:
    schedule = schedule_of(LOAD, "deterministic", seed=0)
    schedule.skip(skipped)
    due = max(0, LOAD.count(0, t_s) - skipped)
    assert schedule.has_more(t_s) == (due > 0)
    assert len(schedule.take(t_s, 10_000)) == due


@pytest.mark.parametrize("kind", KINDS)
def test_records_that_are_left_out(kind: str) -> None:
    expected = all_times(kind)
    for skipped in (1, 40, len(expected) - 1):
        schedule = schedule_of(LOAD, kind, seed=5)
        schedule.skip(skipped)
        assert schedule.next_s() == pytest.approx(expected[skipped])
        assert schedule.take(20.0, 10_000) == pytest.approx(expected[skipped:])
    schedule = schedule_of(LOAD, kind, seed=5)
    schedule.skip(len(expected) + 10)
    assert not schedule.has_more(20.0) and not len(schedule.take(20.0, 10))


def test_no_more_than_a_part_is_held_of_a_long_schedule() -> None:
    schedule = schedule_of(Workload.of_steps([1e9], 1e6), "poisson", seed=1)
    assert len(schedule.take(1e6, 1000)) == 1000
    assert schedule.next_s() < 1e-4


def test_an_unknown_kind_is_named() -> None:
    with pytest.raises(InputError, match="unknown arrival process 'poison'"):
        schedule_of(LOAD, "poison", seed=1)
