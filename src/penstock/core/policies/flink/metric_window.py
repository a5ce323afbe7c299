"""Means and slopes over a sliding metric window, at every past instant at once.

The Flink autoscaler delays decreases by what it recommended over the last hour. Here that
memory is recomputed from the history, so it is done for all instants in one go: with
running sums a window at each of them costs no more than one window.
"""

from dataclasses import dataclass
from operator import attrgetter

import numpy as np
import numpy.typing as npt

from penstock.core.policy import History

Array = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class MetricWindows:
    """For each instant its time and the first sample of the window that ends there."""

    at: Array
    first: npt.NDArray[np.intp]
    #: The first instant whose window is full.
    full_from: int

    @classmethod
    def of(cls, history: History, window_s: float, stable_at: float) -> "MetricWindows":
        """Windows over samples taken at or after `stable_at`, each at most `window_s` long."""
        at = np.array([snapshot.at for snapshot in history])
        stable = int(np.searchsorted(at, stable_at - 1e-9))
        first = np.maximum(np.searchsorted(at, at - window_s - 1e-9), stable)
        first = np.minimum(first, np.arange(len(at)))
        if stable >= len(at):
            return cls(at, first, len(at))
        return cls(at, first, int(np.searchsorted(at, at[stable] + window_s - 1e-9)))

    def mean(self, values: Array) -> Array:
        """Mean of the known values in each window, NaN where none is known."""
        known = ~np.isnan(values)
        if known.all():
            return self.sum(values) / (np.arange(1, len(values) + 1) - self.first)
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.sum(np.where(known, values, 0.0)) / self.sum(known)

    def sum(self, values: Array | npt.NDArray[np.bool_]) -> Array:
        """Sum of the values in each window; of flags, how many are set."""
        sums = np.zeros(len(values) + 1)
        np.cumsum(values, out=sums[1:])
        return np.asarray(sums[1:] - sums[self.first])

    def slope(self, values: Array, at_once: Array) -> Array:
        """Change over each window per second; `at_once` where a window is a single sample."""
        elapsed = self.at - self.at[self.first]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(elapsed > 0, (values - values[self.first]) / elapsed, at_once)


class Measures:
    """Measures along a history, and their means over its windows; each is made once."""

    def __init__(self, history: History, windows: MetricWindows) -> None:
        self._windows = windows
        names = history[-1].operators
        self._operators = {n: [snapshot.operators[n] for snapshot in history] for n in names}
        self._all: dict[tuple[str, str], Array] = {}
        self._means: dict[tuple[str, str], Array] = {}

    def __getitem__(self, key: tuple[str, str]) -> Array:
        """One measure of one operator at every instant, NaN where it is unknown."""
        if key not in self._all:
            name, measure = key
            values = list(map(attrgetter(measure), self._operators[name]))
            self._all[key] = np.array(values, dtype=np.float64)  # None becomes NaN
        return self._all[key]

    def known(self, name: str, measure: str) -> Array:
        """The same with 0 where it is unknown."""
        values = self[name, measure]
        return np.where(np.isnan(values), 0.0, values)

    def mean(self, name: str, measure: str) -> Array:
        """Its mean over the window that ends at each instant."""
        key = name, measure
        if key not in self._means:
            self._means[key] = self._windows.mean(self[key])
        return self._means[key]
