"""Forecasts of the rates of the next steps, as scenarios made from the forecast's own errors.

Methods predict the next steps: the present level, damped trends, and the same steps one period ago.
Their mixture is weighted by the squared errors that each would have made so far. Each scenario adds
what the mixture missed at one time of the past, so bursts keep their shape and length, and no
distribution is assumed (split conformal prediction: Vovk et al. 2005).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]

#: Steps of levels and of the trend: short enough to follow a step of the load.
LEVELS, TREND_STEPS = (1, 3), 5
#: What is left of a trend after each step: for a load that turns soon, and for one that does not.
DAMPINGS = (0.7, 0.97)
#: Fewer errors than this prove nothing; the only scenario then is this much above the level.
MIN_ERRORS, FIRST_MARGIN = 8, 0.2
#: A season counts if the same steps a period ago explain this share of the variance.
MIN_EXPLAINED = 0.8
#: Shortest period, in steps.
MIN_PERIOD = 12


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Forecast:
    """The rates of the next steps: expected, and one row for each scenario."""

    expected: Values
    scenarios: Values
    #: The period of the season in steps; None without one.
    period: int | None = None


def forecast(rates: Sequence[float], steps: int) -> Forecast:
    """Predict the next `steps` from rates at equal distances, the newest last.

    >>> forecast([100.0] * 20, steps=2).expected.tolist()
    [100.0, 100.0]
    >>> forecast([100.0], steps=2).scenarios.tolist()
    [[120.0, 120.0]]
    """
    values = np.asarray(rates, dtype=np.float64)
    period = find_period(values)
    methods = [predict_level(values, steps, level) for level in LEVELS]
    methods += [predict_trend(values, steps, damping) for damping in DAMPINGS]
    if period is not None and period >= steps:
        methods.append(predict_season(values, steps, period))
    predicted = np.maximum(np.stack(methods), 0.0)
    happened = list_next(values, steps)
    known = np.isfinite(happened).all(axis=1) & np.isfinite(predicted).all(axis=(0, 2))
    if np.count_nonzero(known) < MIN_ERRORS:
        level = predicted[0, -1]
        return Forecast(expected=level, scenarios=level[None] * (1 + FIRST_MARGIN))
    mixed = np.tensordot(_weigh(predicted[:, known], happened[known]), predicted, axes=1)
    expected = mixed[-1]
    # an error of the past added to a crest is a rate that was never seen
    highest = np.maximum(expected, np.max(values))
    errors = (happened[known] - mixed[known]) * _scale_errors(mixed[known], expected)
    scenarios = np.clip(expected + errors, 0.0, highest)
    return Forecast(expected=expected, scenarios=scenarios, period=period)


def predict_level(values: Values, steps: int, level: int) -> Values:
    """Return the mean of the last `level` values for all next steps, at each time."""
    sums = np.cumsum(values)
    means = sums / np.arange(1, len(values) + 1)
    if len(values) > level:
        means[level:] = (sums[level:] - sums[:-level]) / level
    return np.repeat(means[:, None], steps, axis=1)


def predict_trend(values: Values, steps: int, damping: float) -> Values:
    """Return a damped trend from the present level, at each time.

    The trend is the median of the slopes between all pairs of the last steps (Theil and Sen), which
    one spike does not change.
    """
    window = min(TREND_STEPS, len(values))
    slopes = np.full(len(values), np.nan if window > 1 else 0.0)
    if window > 1:
        last = np.lib.stride_tricks.sliding_window_view(values, window)
        pairs = [(i, j) for i in range(window) for j in range(i + 1, window)]
        between = [(last[:, j] - last[:, i]) / (j - i) for i, j in pairs]
        slopes[window - 1 :] = np.median(np.vstack(between), axis=0)
    trend: Values = values[:, None] + slopes[:, None] * np.cumsum(damping ** np.arange(steps))
    return trend


def predict_season(values: Values, steps: int, period: int) -> Values:
    """Return the next steps one period ago, at each time."""
    before = np.full((len(values), steps), np.nan)
    before[period:] = list_next(values, steps)[: len(values) - period]
    return before


def list_next(values: Values, steps: int) -> Values:
    """Return the next `steps` values after each; NaN where not all are known."""
    rows = np.full((len(values), steps), np.nan)
    if len(values) > steps:
        windows = np.lib.stride_tricks.sliding_window_view(values[1:], steps)
        rows[: len(values) - steps] = windows
    return rows


def find_period(values: Values) -> int | None:
    """Return the period in steps by which the past explains the present best; None without one.

    At least one and a half periods must be known.
    """
    longest = len(values) * 2 // 3
    spread = float(np.var(values)) if len(values) else 0.0
    if longest < MIN_PERIOD or spread <= 1e-18 * max(1.0, float(np.max(np.abs(values)))) ** 2:
        return None
    lags = range(MIN_PERIOD, longest + 1)
    errors = np.array([np.mean((values[lag:] - values[:-lag]) ** 2) for lag in lags])
    best = int(np.argmin(errors))
    # a difference of two independent values has twice the variance
    is_season = errors[best] <= 2 * spread * (1 - MIN_EXPLAINED)
    # a load that has only risen repeats nothing: its least error is that of the shortest lag
    return lags[best] if is_season and best > 0 else None


def _weigh(predicted: Values, happened: Values) -> Values:
    squares = np.mean((predicted - happened) ** 2, axis=(1, 2))
    smallest = float(np.min(squares))
    if smallest <= 1e-18:
        # several were always right, so far: the present level comes first
        return np.asarray(np.eye(len(squares))[int(np.argmin(squares > 1e-18))])
    inverse = np.square(smallest / squares)
    weights: Values = inverse / inverse.sum()
    return weights


def _scale_errors(predicted: Values, expected: Values) -> Values:
    """Return factors on past errors: those of counts grow with the square root of the rate."""
    now, then = np.mean(expected), np.mean(predicted, axis=1, keepdims=True)
    known = then > 0
    return np.where(known, (now / np.where(known, then, 1.0)) ** 0.5, 1.0)
