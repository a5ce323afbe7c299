"""Least squares with stragglers, against lines that are known."""

import numpy as np
import pytest

from penstock.twin.least_squares import fit_line, fit_mean, fit_ratio, fit_sigma


def noisy_line(seed: int, rows: int = 400) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(seed)
    columns = np.column_stack((np.ones(rows), draw.uniform(1, 8, rows), draw.integers(0, 3, rows)))
    values = (columns @ [0.1, 0.02, 0.05]) * draw.lognormal(-0.02, 0.2, rows)
    return columns, values


def test_factors_come_back_in_spite_of_stragglers() -> None:
    columns, values = noisy_line(1)
    values[::40] += 5.0
    fits = fit_line(columns, values)
    assert [fit.value for fit in fits] == pytest.approx([0.1, 0.02, 0.05], rel=0.15)
    assert all(fit.count == 390 for fit in fits)


def test_an_interval_holds_the_truth_nineteen_times_in_twenty() -> None:
    held = 0
    for seed in range(200):
        fit = fit_line(*noisy_line(seed))[1]
        held += fit.low <= 0.02 <= fit.high
    assert 180 <= held <= 198


def test_a_column_that_never_changes_is_not_fitted() -> None:
    columns, values = noisy_line(1)
    columns[:, 1] = 4.0
    level, constant, other = fit_line(columns, values)
    assert not constant.is_fitted
    assert level.is_fitted
    assert other.value == pytest.approx(0.05, rel=0.2)


def test_no_factor_is_below_zero() -> None:
    draw = np.random.default_rng(2)
    columns = np.column_stack((np.ones(200), draw.uniform(0, 1, 200)))
    level, falling = fit_line(columns, 3 - columns[:, 1] + draw.normal(0, 0.01, 200))
    assert falling.value == 0
    assert falling.is_fitted
    assert level.value == pytest.approx(2.5, rel=0.05)


def test_too_little_tells_nothing() -> None:
    assert not any(fit.is_fitted for fit in fit_line(np.ones((3, 2)), np.ones(3)))
    assert not fit_line(np.empty((0, 2)), np.empty(0))[0].is_fitted
    assert not fit_mean(np.array([1.0])).is_fitted
    assert not fit_ratio(np.array([1.0]), np.array([1.0])).is_fitted
    assert not fit_sigma(np.array([1.0])).is_fitted


def test_means_ratios_and_spreads() -> None:
    draw = np.random.default_rng(3)
    values = np.append(draw.normal(2.0, 0.3, 500), [99.0])
    assert fit_mean(values).value == pytest.approx(2.0, abs=0.05)
    assert fit_sigma(values).value == pytest.approx(0.3, rel=0.1)
    bottoms = draw.integers(1, 50, 300).astype(float)
    tops = draw.binomial(bottoms.astype(int), 0.3).astype(float)
    ratio = fit_ratio(tops, bottoms)
    assert ratio.low < 0.3 < ratio.high
    assert ratio.high - ratio.low < 0.05
