"""Arrival processes: the workload's rate, with the gaps asked for."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workloads.strategies import few, workloads

from penstock.errors import InputError
from penstock.workloads.arrivals import arrival_times, arrivals
from penstock.workloads.piecewise import FloatArray
from penstock.workloads.registry import make_workload
from penstock.workloads.workload import Workload

STEADY = Workload.of_steps([100], step_s=2000)


def all_times(load: Workload, scv: float, seed: int = 1, chunk: int = 1 << 16) -> FloatArray:
    return np.concatenate([[], *arrival_times(load, scv=scv, seed=seed, chunk=chunk)])


@few
@given(workloads(), st.integers(1, 5000))
def test_evenly_spaced_records_come_exactly_when_they_are_counted(
    load: Workload, chunk: int
) -> None:
    load = load * 0.01
    times = all_times(load, 0, chunk=chunk)
    assert len(times) == load.total_records
    assert np.all(np.diff(times) >= 0)
    for t_s in np.linspace(0.1, load.duration_s, 5):
        assert abs(int((times <= t_s).sum()) - load.count(0, float(t_s))) <= 1


@pytest.mark.parametrize("scv", [0.25, 0.5, 1.0, 2.0, 4.0])
def test_gaps_have_the_mean_and_the_variation_asked_for(scv: float) -> None:
    gaps = np.diff(all_times(STEADY, scv))
    assert gaps.mean() == pytest.approx(0.01, rel=0.02)
    assert gaps.var() / gaps.mean() ** 2 == pytest.approx(scv, rel=0.05)


@pytest.mark.parametrize("scv", [0.25, 1.0, 9.0])
def test_the_expected_count_is_the_integral_from_the_very_first_second_on(scv: float) -> None:
    load = Workload.of_steps([2, 0, 4], step_s=1)
    counts = np.array([len(all_times(load, scv, seed, chunk=64)) for seed in range(1000)])
    error = counts.std() / np.sqrt(len(counts))
    assert abs(counts.mean() - 6) < 4 * error


def test_poisson_counts_of_a_changing_load_have_variance_equal_to_their_mean() -> None:
    load = make_workload("cosine", 60) * 1e-4
    times = all_times(load, 1.0)
    expected = np.diff(load.integrals(np.arange(0, 3601, 10.0)))
    counts, _ = np.histogram(times, np.arange(0, 3601, 10.0))
    assert counts.sum() == pytest.approx(expected.sum(), abs=4 * np.sqrt(expected.sum()))
    assert np.mean((counts - expected) ** 2 / expected) == pytest.approx(1, abs=0.3)


@pytest.mark.parametrize("scv", [0.0, 0.3, 1.0, 5.0])
def test_times_increase_stay_inside_and_depend_on_the_seed_only(scv: float) -> None:
    load = make_workload("trapezoid", 5)
    times = all_times(load, scv, seed=3)
    assert np.all(np.diff(times) >= 0)
    assert times[0] > 0 and times[-1] <= 300
    assert np.array_equal(times, all_times(load, scv, seed=3))
    assert (scv == 0) == np.array_equal(times[:9], all_times(load, scv, seed=4)[:9])


def test_nothing_arrives_while_nothing_is_offered() -> None:
    load = Workload.of_steps([50, 0, 50], step_s=10)
    times = all_times(load, 1.0)
    assert not np.any((times > 10) & (times < 20))
    assert len(all_times(Workload.of_steps([0]), 1.0)) == 0
    assert len(all_times(Workload.of_steps([0]), 0.0)) == 0


def test_processes_have_names() -> None:
    by_name = np.concatenate(list(arrivals("bursty", STEADY, seed=2, scv=3)))
    assert np.array_equal(by_name, all_times(STEADY, 3, seed=2))
    poisson = np.concatenate(list(arrivals("poisson", STEADY, seed=2)))
    assert np.array_equal(poisson, all_times(STEADY, 1, seed=2))


def test_unknown_processes_and_variations_are_refused() -> None:
    with pytest.raises(InputError, match="did you mean 'poisson'"):
        arrivals("poison", STEADY, seed=1)
    with pytest.raises(InputError, match="scv: must be finite and at least 0, got -1"):
        arrival_times(STEADY, scv=-1, seed=1)
