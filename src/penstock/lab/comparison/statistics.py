"""Statistics of a few paired runs: means with 95 % intervals, and the certainty of an order.

Runs are paired by seed: two policies are compared run by run under the same load, so that the
effect of the load cancels out.
"""

import math
from collections.abc import Sequence
from functools import lru_cache
from itertools import product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
#: A fixed seed: the same runs always have the same interval.
SEED = 1066
#: Up to this number of pairs, all sign flips are enumerated; above it, they are sampled.
_MAX_EXACT = 13

FloatArray = NDArray[np.float64]


class Interval(NamedTuple):
    """A mean and its 95 % confidence interval."""

    mean: float
    #: Infinite for a single run, whose spread is unknown.
    low: float
    high: float

    @property
    def is_known(self) -> bool:
        """Whether there are enough runs for an interval."""
        return math.isfinite(self.low) and math.isfinite(self.high)


class PairedDifference(NamedTuple):
    """The difference of two series of paired runs: first minus second."""

    interval: Interval
    #: Certainty that the first has the smaller mean; 0.5 without evidence for either.
    less: float
    #: Share of pairs in which the first is the smaller one; ties count half.
    wins: float

    @property
    def certainty(self) -> float:
        """Return the certainty that the series with the smaller mean is really smaller."""
        return max(self.less, 1 - self.less)


def compute_mean_interval(values: Sequence[float], confidence: float = 0.95) -> Interval:
    """Return the mean and its bootstrap interval.

    The percentiles are widened by the ratio of Student's t to the normal distribution, because
    the plain bootstrap interval of five runs covers the true mean only four times in five
    (Hesterberg, "What teachers should know about the bootstrap", 2015).

    >>> compute_mean_interval([3.0, 3.0, 3.0])
    Interval(mean=3.0, low=3.0, high=3.0)
    """
    if not len(values):
        raise ValueError("a mean needs at least one value")
    sample = np.asarray(values, float)
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return Interval(mean, -math.inf, math.inf)
    if sample.min() == sample.max():
        return Interval(mean, mean, mean)
    means = sample[_draws(len(values))].mean(axis=1)
    outside = _outside(len(values), confidence)
    low, high = np.quantile(means, [outside, 1 - outside])
    return Interval(mean, min(float(low), mean), max(float(high), mean))


def compute_difference_interval(
    first: Sequence[float], second: Sequence[float], confidence: float = 0.95
) -> Interval:
    """Return the mean of first minus second, pair by pair, with its interval."""
    return compute_mean_interval(_differences(first, second), confidence)


def compare_pairs(first: Sequence[float], second: Sequence[float]) -> PairedDifference:
    """Return how two series of paired runs differ, and how certain that is.

    The certainty is that of the sign-flip test: if both were equal, every difference could have
    had the other sign. It is the share of sign combinations with a larger mean difference.
    Therefore five pairs never give more than 98 %, however large the difference.

    >>> compare_pairs([1, 2, 3], [2, 4, 6]).less  # one of eight combinations, which counts half
    0.9375
    """
    differences = _differences(first, second)
    sample = np.asarray(differences, float)
    wins = float(np.mean(sample < 0) + np.mean(sample == 0) / 2)
    return PairedDifference(compute_mean_interval(differences), _certainty_of_less(sample), wins)


def _differences(first: Sequence[float], second: Sequence[float]) -> list[float]:
    return [a - b for a, b in zip(first, second, strict=True)]


def _certainty_of_less(differences: FloatArray) -> float:
    """Return the share of sign combinations with a larger mean difference; ties count half."""
    sizes = np.abs(differences)
    observed = differences.sum()
    sums = _signs(len(sizes)) @ sizes
    noise = 1e-9 * sizes.sum()
    larger = np.count_nonzero(sums > observed + noise)
    same = np.count_nonzero(np.abs(sums - observed) <= noise)
    if len(sizes) > _MAX_EXACT:  # the observed combination counts, too
        return float((larger + (same + 1) / 2) / (len(sums) + 1))
    return float((larger + same / 2) / len(sums))


@lru_cache(maxsize=8)
def _signs(n: int) -> FloatArray:
    """Return all combinations of n signs, or a large sample of them."""
    if n <= _MAX_EXACT:
        return np.array(list(product((-1.0, 1.0), repeat=n)))
    return np.random.default_rng(SEED).choice((-1.0, 1.0), size=(RESAMPLES, n))


@lru_cache(maxsize=8)
def _draws(n: int) -> NDArray[np.int64]:
    """Return the indices of the values of each resample."""
    return np.random.default_rng(SEED).integers(0, n, size=(RESAMPLES, n))


@lru_cache(maxsize=64)
def _outside(n: int, confidence: float) -> float:
    """Return the share of resampled means to cut off on either side."""
    wanted = (1 + confidence) / 2
    low, high = 0.0, 1e4
    for _ in range(60):  # t has no closed inverse
        middle = (low + high) / 2
        is_below = student_cdf(middle, n - 1) < wanted
        low, high = (middle, high) if is_below else (low, middle)
    return NormalDist().cdf(-high * math.sqrt(n / (n - 1)))


def student_cdf(t: float, freedom: int) -> float:
    """Return the probability that Student's t with `freedom` degrees of freedom is below `t`.

    >>> student_cdf(1.0, 1), round(student_cdf(2.776445, 4), 6)
    (0.75, 0.975)
    """
    angle = math.atan2(t, math.sqrt(freedom))
    cosine = math.cos(angle)
    term = cosine if freedom % 2 else 1.0
    series = 0.0
    for k in range(1 + freedom % 2, freedom, 2):
        series += term
        term *= cosine**2 * k / (k + 1)
    within = math.sin(angle) * series
    if freedom % 2:
        within = 2 / math.pi * (angle + within)
    return (1 + within) / 2
