"""Intervals and certainties against known distributions and exact small cases."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.lab.comparison.statistics import (
    compare_pairs,
    compute_difference_interval,
    compute_mean_interval,
    student_cdf,
)

samples = st.lists(st.integers(-1000, 1000), min_size=2, max_size=12)


@settings(max_examples=40)
@given(samples)
def test_an_interval_holds_its_mean_and_stays_within_the_values(values: list[int]) -> None:
    mean, low, high = compute_mean_interval(values)
    assert min(values) <= low <= mean <= high <= max(values)
    assert mean == pytest.approx(np.mean(values))


@settings(max_examples=40)
@given(samples, st.integers(-500, 500), st.integers(1, 9))
def test_an_interval_moves_and_grows_with_its_values(
    values: list[int], shift: int, factor: int
) -> None:
    before = compute_mean_interval(values)
    after = compute_mean_interval([shift + factor * value for value in values])
    assert after == pytest.approx([shift + factor * number for number in before], abs=1e-6)


def test_one_run_tells_nothing_about_the_spread() -> None:
    interval = compute_mean_interval([5.0])
    assert interval == (5.0, -math.inf, math.inf)
    assert not interval.is_known


def test_no_runs_have_no_mean() -> None:
    with pytest.raises(ValueError, match="at least one"):
        compute_mean_interval([])


def test_two_runs_allow_everything_between_them() -> None:
    assert compute_mean_interval([2.0, 4.0]) == (3.0, 2.0, 4.0)


def test_the_interval_of_many_normal_values_is_that_of_student() -> None:
    values = np.random.default_rng(5).normal(100, 10, 40)
    half = 2.0227 * values.std(ddof=1) / math.sqrt(40)  # t of 39 degrees, from a printed table
    mean, low, high = compute_mean_interval(values.tolist())
    assert (mean - low, high - mean) == (pytest.approx(half, rel=0.1), pytest.approx(half, rel=0.1))


@pytest.mark.parametrize(("runs", "least"), [(5, 0.88), (20, 0.91)])
def test_nineteen_of_twenty_intervals_hold_the_truth(runs: int, least: float) -> None:
    draws = np.random.default_rng(11).normal(7, 2, (200, runs)).tolist()
    hits = [low <= 7 <= high for _, low, high in map(compute_mean_interval, draws)]
    assert least <= np.mean(hits) <= 0.98


def test_pairing_takes_out_what_the_load_did_to_both() -> None:
    load = np.random.default_rng(2).normal(0, 100, 10)
    first, second = (load + 1).tolist(), (load + np.linspace(2.9, 3.1, 10)).tolist()
    mean, low, high = compute_difference_interval(first, second)
    assert mean == pytest.approx(-2) and -2.1 < low < high < -1.9


def test_pairs_must_be_pairs() -> None:
    with pytest.raises(ValueError, match="argument 2 is shorter"):
        compute_difference_interval([1, 2], [1])


@settings(max_examples=40)
@given(st.lists(st.integers(-6, 6), min_size=1, max_size=7))
def test_certainty_is_the_share_of_worlds_with_other_signs(differences: list[int]) -> None:
    worlds = [
        sum(sign * abs(d) for sign, d in zip(signs, differences, strict=True))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    observed = sum(differences)
    expected = sum((world > observed) + (world == observed) / 2 for world in worlds) / len(worlds)
    assert compare_pairs(differences, [0] * len(differences)).less == pytest.approx(expected)


@pytest.mark.parametrize("smaller", [6, 10, 14, 16])
def test_certainty_of_many_pairs_is_binomial_where_all_differ_by_one(smaller: int) -> None:
    differences = [-1] * smaller + [1] * (20 - smaller)
    chance = [math.comb(20, k) / 2**20 for k in range(21)]  # k of 20 are the smaller ones
    expected = sum(chance[:smaller]) + chance[smaller] / 2
    found = compare_pairs(differences, [0] * 20)
    assert found.less == pytest.approx(expected, abs=0.015)
    assert found.wins == smaller / 20


@settings(max_examples=40)
@given(samples)
def test_what_speaks_for_one_speaks_against_the_other(values: list[int]) -> None:
    nothing = [0] * len(values)
    one, other = compare_pairs(values, nothing), compare_pairs(nothing, values)
    assert one.less + other.less == pytest.approx(1)
    assert one.wins + other.wins == pytest.approx(1)
    assert one.certainty == pytest.approx(other.certainty) and one.certainty >= 0.5


def test_equal_runs_speak_for_neither() -> None:
    same = compare_pairs([1.0, 2.0, 3.0], [1.0, 2.0, 3.0])
    assert (same.less, same.wins, same.interval) == (0.5, 0.5, (0, 0, 0))


def test_few_runs_are_never_certain_and_many_never_quite() -> None:
    assert compare_pairs([0] * 5, [1] * 5).less == 1 - 0.5 / 2**5
    assert 0.999 < compare_pairs([0] * 30, [1] * 30).less < 1


@pytest.mark.parametrize(
    ("t", "freedom", "below"),
    [(6.313752, 1, 0.95), (4.302653, 2, 0.975), (2.570582, 5, 0.975), (2.763769, 10, 0.99)],
)
def test_student_agrees_with_printed_tables(t: float, freedom: int, below: float) -> None:
    assert student_cdf(t, freedom) == pytest.approx(below, abs=1e-6)
    assert student_cdf(-t, freedom) == pytest.approx(1 - below, abs=1e-6)
