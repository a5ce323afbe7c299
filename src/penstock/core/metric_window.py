"""Means and slopes over a sliding metric window, at every past instant at once.

The Flink autoscaler delays decreases by what it recommended over the last hour. Here that
memory is recomputed from the history, so it is done for all instants in one go: with
running sums a window at each of them costs no more than one window.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from penstock.core.policy import History
from penstock.core.snapshot import OperatorSnapshot

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Windows:
    """For each instant its time and the first sample of the window that ends there."""

    at: Array
    first: npt.NDArray[np.intp]
    #: The first instant whose window is full.
    full_from: int

    @classmethod
    def of(cls, history: History, window_s: float, stable_at: float) -> "Windows":
        """Windows over samples taken at or after `stable_at`, each at most `window_s` long."""
        at = np.array([snapshot.at for snapshot in history])
        stable = int(np.searchsorted(at, stable_at - 1e-9))
        first = np.maximum(np.searchsorted(at, at - window_s - 1e-9), stable)
        if stable >= len(at):
            return cls(at, first, len(at))
        return cls(at, first, int(np.searchsorted(at, at[stable] + window_s - 1e-9)))

    def mean(self, values: Array) -> Array:
        """Mean of the known values in each window, NaN where none is known."""
        known = ~np.isnan(values)
        sums = np.concatenate(([0.0], np.cumsum(np.where(known, values, 0.0))))
        counts = np.concatenate(([0], np.cumsum(known)))
        last = np.arange(1, len(values) + 1)
        first = np.minimum(self.first, last - 1)
        n = counts[last] - counts[first]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.asarray((sums[last] - sums[first]) / n)

    def slope(self, values: Array, at_once: Array) -> Array:
        """Change over each window per second; `at_once` where a window is a single sample."""
        first = np.minimum(self.first, np.arange(len(values)))
        elapsed = self.at - self.at[first]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(elapsed > 0, (values - values[first]) / elapsed, at_once)

    def count(self, flags: npt.NDArray[np.bool_]) -> npt.NDArray[np.intp]:
        """How many samples of each window are flagged."""
        sums = np.concatenate(([0], np.cumsum(flags)))
        last = np.arange(1, len(flags) + 1)
        return np.asarray(sums[last] - sums[np.minimum(self.first, last - 1)])


def column(
    history: History, name: str, measure: Callable[[OperatorSnapshot], float | None]
) -> Array:
    """One measure of one operator along the history, NaN where it is unknown."""
    ops = (snapshot.operators[name] for snapshot in history)
    return np.array([math.nan if (value := measure(op)) is None else value for op in ops])
