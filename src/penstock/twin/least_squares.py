"""Robust least squares with confidence intervals. NumPy only.

A first fit reduces the weight of outliers (Huber). Observations far from this fit are left out,
and a plain fit of the rest follows, which is unbiased for asymmetric noise. Intervals use the
sandwich estimator: they are valid if the noise grows with the value.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]

#: Standard errors of a 95 % interval.
_Z_95 = 1.96
#: Maximum distance of an observation in robust standard deviations; farther ones are outliers.
_MAX_DEVIATIONS = 6.0
_HUBER = 1.345
_ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Fit:
    """A number with its 95 % interval; not fitted if the data does not determine it."""

    value: float
    low: float
    high: float
    #: Number of observations.
    count: int
    is_fitted: bool = True


def fit_line(columns: FloatArray, values: FloatArray) -> list[Fit]:
    """Fit values by columns with factors of at least 0; a constant column is not fitted.

    Only the first column may be constant: it is the intercept. A negative factor becomes 0.
    """
    count, width = columns.shape
    missing = Fit(0.0, 0.0, 0.0, count, is_fitted=False)
    if count < 2 * width + 2:
        return [missing] * width
    free = [i for i in range(width) if i == 0 or np.ptp(columns[:, i]) > 1e-12]
    free = [i for i in free if _adds(columns, [j for j in free if j < i], i)]
    used = list(free)
    while True:
        factors, errors, kept = _solve(columns[:, used], values)
        worst = int(np.argmin(factors))
        if factors[worst] >= 0 or len(used) == 1:
            break
        used.pop(worst)
    solved = {i: (f, e) for i, f, e in zip(used, factors, errors, strict=True)}
    return [_fit(*solved.get(i, (0.0, 0.0)), kept) if i in free else missing for i in range(width)]


def _adds(columns: FloatArray, before: list[int], i: int) -> bool:
    """Whether a column is linearly independent of those before it."""
    if not before:
        return True
    chosen = columns[:, [*before, i]]
    scaled = chosen / np.maximum(np.abs(chosen).max(axis=0), 1e-12)
    return bool(np.linalg.cond(scaled) < 1e6)


def _fit(value: float, error: float, count: int) -> Fit:
    value = max(0.0, float(value))
    return Fit(value, max(0.0, value - _Z_95 * error), value + _Z_95 * error, count)


def _solve(columns: FloatArray, values: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    weights = np.ones(len(values))
    for _ in range(_ROUNDS):
        root = np.sqrt(weights)
        factors = np.linalg.lstsq(columns * root[:, None], values * root, rcond=None)[0]
        off = values - columns @ factors
        scale = _spread(off)
        weights = np.minimum(1.0, _HUBER * scale / np.maximum(np.abs(off), 1e-15))
    kept = np.abs(off) <= _MAX_DEVIATIONS * scale
    columns, values = columns[kept], values[kept]
    factors = np.linalg.lstsq(columns, values, rcond=None)[0]
    off = values - columns @ factors
    inverse = np.linalg.pinv(columns.T @ columns)
    correction = len(values) / max(1, len(values) - columns.shape[1])
    covariance = inverse @ (columns.T * (off * off * correction)) @ columns @ inverse
    errors = np.sqrt(np.maximum(np.diag(covariance), 0.0))
    return factors.astype(np.float64), errors.astype(np.float64), len(values)


def _spread(off: FloatArray) -> float:
    """Return the standard deviation, estimated from the median absolute deviation."""
    return max(1e-9, 1.4826 * float(np.median(np.abs(off - np.median(off)))))


def fit_mean(values: FloatArray) -> Fit:
    """Return the mean without outliers."""
    if len(values) < 4:
        return Fit(0.0, 0.0, 0.0, len(values), is_fitted=False)
    return fit_line(np.ones((len(values), 1)), values)[0]


def fit_middle(values: Iterable[float | None]) -> Fit:
    """Return the median, with an interval from order statistics."""
    known = sorted(v for v in values if v is not None)
    if len(known) < 8:
        return Fit(0.0, 0.0, 0.0, len(known), is_fitted=False)
    half = 0.98 * np.sqrt(len(known))
    low = known[max(0, int(len(known) / 2 - half))]
    high = known[min(len(known) - 1, int(np.ceil(len(known) / 2 + half)))]
    return Fit(float(np.median(known)), low, high, len(known))


def fit_ratio(tops: FloatArray, bottoms: FloatArray) -> Fit:
    """Return the ratio of two sums, with an interval from the residuals of the pairs."""
    total = float(bottoms.sum())
    if len(tops) < 4 or total <= 0:
        return Fit(0.0, 0.0, 0.0, len(tops), is_fitted=False)
    ratio = float(tops.sum()) / total
    error = float(np.sqrt(((tops - ratio * bottoms) ** 2).sum())) / total
    return _fit(ratio, error, len(tops))


def fit_sigma(values: FloatArray) -> Fit:
    """Return the standard deviation without outliers, with an interval for normal noise."""
    if len(values) < 8:
        return Fit(0.0, 0.0, 0.0, len(values), is_fitted=False)
    middle = float(np.median(values))
    kept = values[np.abs(values - middle) <= _MAX_DEVIATIONS * _spread(values)]
    sigma = float(kept.std(ddof=1))
    return _fit(sigma, sigma / np.sqrt(2 * (len(kept) - 1)), len(kept))
