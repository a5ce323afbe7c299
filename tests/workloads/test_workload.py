"""A workload is a pure rate with exact counts, and its parts can be put together."""

import math
import pickle
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.workloads.strategies import eighths, exact_integral, few, times, workloads

from penstock.errors import InputError
from penstock.workloads.workload import Workload

any_time = st.floats(-10, 500)


@few
@given(workloads(), times)
def test_the_count_is_the_exact_integral_rounded_down(load: Workload, t_s: float) -> None:
    assert load.integral(t_s) == exact_integral(load, t_s)
    assert load.count(0, t_s) == math.floor(exact_integral(load, t_s))


@few
@given(workloads(), st.lists(any_time, min_size=2, max_size=30))
def test_counts_add_up_however_the_time_is_cut(load: Workload, cuts: list[float]) -> None:
    cuts = sorted(cuts)
    pieces = [load.count(a, b) for a, b in pairwise(cuts)]
    assert sum(pieces) == load.count(cuts[0], cuts[-1])
    assert min(pieces) >= 0


@few
@given(workloads(), st.sampled_from([0.1, 0.3, 1.0, 1.7, 60.0]))
def test_many_counts_at_once_are_the_single_counts(load: Workload, step_s: float) -> None:
    counts = load.counts(step_s=step_s)
    edges = [index * step_s for index in range(len(counts))] + [load.duration_s]
    assert counts.dtype == np.int64
    assert counts.tolist() == [load.count(a, b) for a, b in pairwise(edges)]
    assert counts.sum() == load.total_records


@few
@given(workloads(), any_time)
def test_the_integral_is_the_same_one_by_one_and_at_once(load: Workload, t_s: float) -> None:
    assert load.integrals(np.array([t_s]))[0] == load.integral(t_s)


@few
@given(workloads(), st.floats(0, 1))
def test_when_is_the_inverse_of_the_integral(load: Workload, share: float) -> None:
    records = share * load.integral(load.duration_s)
    reached_s = float(load.when(np.array([records]))[0])
    assert 0 <= reached_s <= load.duration_s
    assert load.integral(reached_s) == pytest.approx(records, rel=1e-9, abs=1e-6)


def test_a_number_of_records_that_is_never_offered_takes_for_ever() -> None:
    load = Workload.of_steps([1, 0], step_s=10)
    assert load.when(np.array([10.0, 10.5])).tolist() == [10.0, math.inf]


@few
@given(workloads(), any_time)
def test_the_rate_is_never_negative_and_nothing_outside(load: Workload, t_s: float) -> None:
    assert load.rate(t_s) >= 0
    if not 0 <= t_s < load.duration_s:
        assert load.rate(t_s) == 0


def test_tenths_of_records_are_carried_without_loss_over_a_day() -> None:
    load = Workload.of_steps([0.1], step_s=86_400)
    assert load.counts(step_s=1).sum() == 8640
    assert load.counts(step_s=10).tolist() == [1] * 8640


def test_a_billion_records_are_counted_to_the_last_one() -> None:
    load = Workload.of_steps([2_499_999] * 140)
    assert load.counts(step_s=0.1).sum() == 2_499_999 * 8400 == load.total_records


@few
@given(workloads(), workloads(), times)
def test_a_sum_offers_both(one: Workload, two: Workload, t_s: float) -> None:
    both = one + two
    assert both.rate(t_s) == pytest.approx(one.rate(t_s) + two.rate(t_s), rel=1e-12)
    assert both.duration_s == max(one.duration_s, two.duration_s)
    assert both.integral(t_s) == pytest.approx(one.integral(t_s) + two.integral(t_s), rel=1e-12)


@few
@given(workloads(), workloads(), workloads())
def test_sums_do_not_depend_on_their_order(a: Workload, b: Workload, c: Workload) -> None:
    assert a + b == b + a
    assert ((a + b) + c).total_records == (a + (b + c)).total_records


@few
@given(workloads(), workloads(), times)
def test_one_then_the_other(one: Workload, two: Workload, t_s: float) -> None:
    both = one.then(two)
    assert both.duration_s == one.duration_s + two.duration_s
    first = one.rate(t_s) if t_s < one.duration_s else two.rate(t_s - one.duration_s)
    assert both.rate(t_s) == first


@few
@given(workloads(), workloads(), workloads())
def test_then_is_associative(a: Workload, b: Workload, c: Workload) -> None:
    assert a.then(b).then(c) == a.then(b.then(c))


@few
@given(workloads(), workloads(), st.sampled_from([0, 0.5, 1, 2, 4]), times)
def test_a_factor_goes_into_sums_and_sequences(
    a: Workload, b: Workload, factor: float, t_s: float
) -> None:
    assert (a + b) * factor == a * factor + b * factor
    assert a.then(b) * factor == (factor * a).then(factor * b)
    assert (a * factor).rate(t_s) == a.rate(t_s) * factor


@few
@given(workloads(), st.sampled_from([0.5, 2, 8]), times)
def test_speeding_up_keeps_rates_and_shortens_time(
    load: Workload, factor: float, t_s: float
) -> None:
    fast = load.sped_up(factor)
    assert fast.duration_s == load.duration_s / factor
    assert fast.rate(t_s / factor) == load.rate(t_s)


@few
@given(workloads(), times, st.integers(1, 400))
def test_a_part_is_that_part(load: Workload, begin_s: float, length_s: int) -> None:
    part = load.between(begin_s, begin_s + length_s)
    assert part.duration_s == length_s
    exact = exact_integral(load, begin_s + length_s) - exact_integral(load, begin_s)
    assert part.integral(length_s) == pytest.approx(float(exact), rel=1e-12, abs=1e-9)


@few
@given(workloads(), st.lists(st.integers(-9000, 9000), min_size=1, max_size=8), times)
def test_added_steps_never_push_the_rate_below_zero(
    load: Workload, steps: list[int], t_s: float
) -> None:
    changed = load.plus_steps(steps, step_s=16)
    at = int(t_s // 16)
    extra = steps[at] if at < len(steps) else 0
    inside = t_s < load.duration_s
    expected = max(0.0, load.rate(t_s) + extra) if inside else 0.0
    assert changed.rate(t_s) == pytest.approx(expected, rel=1e-9, abs=1e-6)
    assert changed.duration_s == load.duration_s


@few
@given(st.lists(eighths, min_size=1, max_size=20))
def test_minute_rates_come_back_as_they_went_in(rates: list[float]) -> None:
    assert Workload.of_steps(rates).mean_rates().tolist() == rates


def test_two_points_at_one_time_make_a_jump() -> None:
    load = Workload.of_points([0, 10, 10, 20], [0, 5, 1, 1])
    assert (load.rate(9.999), load.rate(10)) == (pytest.approx(5, abs=0.01), 1)


def test_equal_workloads_are_equal_hash_alike_and_survive_pickling() -> None:
    load = Workload.of_steps([1, 2, 3])
    assert load == Workload.of_steps([1, 2, 3]) != Workload.of_steps([1, 2, 4])
    assert hash(load) == hash(Workload.of_steps([1, 2, 3]))
    copy = pickle.loads(pickle.dumps(load))
    assert copy == load and copy.counts().tolist() == load.counts().tolist()


@pytest.mark.parametrize(
    ("edges", "rates", "problem"),
    [
        ((0.0,), (), "one piece at least"),
        ((0.0, 1.0), (-1.0,), "at least 0, got -1"),
        ((0.0, 1.0), (math.nan,), "finite"),
        ((0.0, 0.0), (1.0,), "increase"),
        ((1.0, 2.0), (1.0,), "begin at 0"),
    ],
)
def test_what_is_no_rate_over_time_is_refused(
    edges: tuple[float, ...], rates: tuple[float, ...], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        Workload(edges_s=edges, starts=rates, ends=rates)


@pytest.mark.parametrize("factor", [-1, math.inf, math.nan])
def test_factors_are_finite_and_not_negative(factor: float) -> None:
    with pytest.raises(InputError, match="factor"):
        Workload.of_steps([1]) * factor
    with pytest.raises(InputError, match="speed_up"):
        Workload.of_steps([1]).sped_up(factor)


def test_the_counts_of_parts_are_those_of_the_whole() -> None:
    load = Workload.of_points([0, 100, 250], [0.3, 17.7, 2.1])
    parts = [load.counts(60, begin_s=begin) for begin in (0.0, 60.0, 120.0, 180.0)]
    assert np.concatenate([*parts, load.counts(begin_s=240.0)]).tolist() == load.counts().tolist()
