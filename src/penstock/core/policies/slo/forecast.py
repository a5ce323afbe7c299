"""Forecasts of the highest rate of the next steps, with an upper bound from their own errors.

Methods predict the peak of the next steps: the present level, damped trends, and the same steps one
period ago. Their mixture is weighted by the squared errors that each would have made so far. The
upper bound adds a quantile of the mixture's errors (split conformal prediction: Vovk et al. 2005),
so it assumes no distribution.
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
#: Fewer errors than this prove nothing; the bound then is this much above the level.
MIN_ERRORS, FIRST_MARGIN = 8, 0.2
#: A season counts if the same steps a period ago explain this share of the variance.
MIN_EXPLAINED = 0.8
#: Shortest period, in steps.
MIN_PERIOD = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The highest rate of the next steps: expected, and not exceeded with the asked probability."""

    mean: float
    upper: float
    #: The period of the season in steps; None without one.
    period: int | None = None


def forecast(rates: Sequence[float], steps: int, share: float) -> Forecast:
    """Predict the peak of the next `steps` from rates at equal distances, the newest last.

    >>> forecast([100.0] * 20, steps=2, share=0.99)
    Forecast(mean=100.0, upper=100.0, period=None)
    >>> forecast([100.0], steps=2, share=0.99).upper
    120.0
    """
    values = np.asarray(rates, dtype=np.float64)
    period = find_period(values)
    methods = [predict_level(values, level) for level in LEVELS]
    methods += [predict_trend(values, steps, damping) for damping in DAMPINGS]
    if period is not None and period >= steps:
        methods.append(predict_season(values, steps, period))
    predicted = np.maximum(np.vstack(methods), 0.0)
    happened = peak_of_next(values, steps)
    known = np.isfinite(happened) & np.isfinite(predicted).all(axis=0)
    if np.count_nonzero(known) < MIN_ERRORS:
        level = float(predicted[0, -1])
        return Forecast(mean=level, upper=level * (1 + FIRST_MARGIN))
    mixed = _weigh(predicted[:, known], happened[known]) @ predicted
    mean = float(mixed[-1])
    margin = max(0.0, _conformal_quantile(happened[known] - mixed[known], share))
    # an error of the past added to a crest is a rate that was never seen
    highest = max(mean, float(np.max(values)))
    return Forecast(mean=mean, upper=min(mean + margin, highest), period=period)


def predict_level(values: Values, steps: int) -> Values:
    """Return the mean of the last steps, at each time."""
    sums = np.cumsum(values)
    means = sums / np.arange(1, len(values) + 1)
    if len(values) > steps:
        means[steps:] = (sums[steps:] - sums[:-steps]) / steps
    return np.asarray(means)


def predict_trend(values: Values, steps: int, damping: float) -> Values:
    """Return the highest point of a damped trend from the present level.

    The trend is the median of the slopes between all pairs of the last steps (Theil and Sen), which
    one spike does not change.
    """
    level = values.copy()
    window = min(TREND_STEPS, len(values))
    if window < 2:
        return level
    last = np.lib.stride_tricks.sliding_window_view(values, window)
    pairs = [(i, j) for i in range(window) for j in range(i + 1, window)]
    slopes = np.full(len(values), np.nan)
    between = [(last[:, j] - last[:, i]) / (j - i) for i, j in pairs]
    slopes[window - 1 :] = np.median(np.vstack(between), axis=0)
    path = np.cumsum(damping ** np.arange(steps))
    trend: Values = level + np.where(slopes > 0, slopes * path[-1], slopes * path[0])
    return trend


def predict_season(values: Values, steps: int, period: int) -> Values:
    """Return the peak of the next steps one period ago, at each time."""
    before = np.full(len(values), np.nan)
    before[period:] = peak_of_next(values, steps)[: len(values) - period]
    return before


def peak_of_next(values: Values, steps: int) -> Values:
    """Return the highest of the next `steps` values after each; NaN where not all are known."""
    peaks = np.full(len(values), np.nan)
    if len(values) > steps:
        windows = np.lib.stride_tricks.sliding_window_view(values[1:], steps)
        peaks[: len(values) - steps] = windows.max(axis=1)
    return peaks


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
    squares = np.mean((predicted - happened) ** 2, axis=1)
    smallest = float(np.min(squares))
    if smallest <= 1e-18:
        # several were always right, so far: the present level comes first
        return np.asarray(np.eye(len(squares))[int(np.argmin(squares > 1e-18))])
    inverse = np.square(smallest / squares)
    weights: Values = inverse / inverse.sum()
    return weights


def _conformal_quantile(errors: Values, share: float) -> float:
    """Return the error that the next one exceeds with probability 1 - share at most."""
    ordered = np.sort(errors)
    rank = int(np.ceil(share * (len(ordered) + 1)))
    return float(ordered[min(rank, len(ordered)) - 1])
