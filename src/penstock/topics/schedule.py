"""The due times of the records of a workload, in order."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from penstock.workloads.arrivals import arrivals
from penstock.workloads.piecewise import FloatArray
from penstock.workloads.workload import Workload


class Schedule(Protocol):
    """The remaining records."""

    def skip(self, records: int) -> None:
        """Skip this many records."""

    def take(self, t_s: float, most: int) -> FloatArray:
        """Take up to `most` records that are due by second `t_s`; return their due times."""

    def next_s(self) -> float:
        """Return the due time of the next record, or infinity."""

    def has_more(self, end_s: float) -> bool:
        """Whether another record is due by second `end_s`."""


def schedule_of(load: Workload, kind: str, seed: int) -> Schedule:
    """Return the schedule of a workload for an arrival process."""
    return (
        _EvenSchedule(load)
        if kind == "deterministic"
        else _RandomSchedule(arrivals(kind, load, seed=seed))
    )


class _EvenSchedule:
    """Exactly `load.count(0, t)` records by second t, in spite of rounding."""

    def __init__(self, load: Workload) -> None:
        self._load, self._next = load, 0

    def skip(self, records: int) -> None:
        self._next += records

    def take(self, t_s: float, most: int) -> FloatArray:
        end = min(self._load.count(0, t_s), self._next + most)
        times = self._times(end)
        self._next = max(self._next, end)
        # rounding may place the last one slightly after t_s
        return np.minimum(times, t_s)

    def next_s(self) -> float:
        if not self.has_more(self._load.duration_s):
            return float("inf")
        return float(self._times(self._next + 1)[0])

    def has_more(self, end_s: float) -> bool:
        return self._next < self._load.count(0, end_s)

    def _times(self, end: int) -> FloatArray:
        numbers = np.arange(self._next + 1, end + 1, dtype=float)
        return self._load.when(np.minimum(numbers, self._load.integral(self._load.duration_s)))


class _RandomSchedule:
    """Records at random times, drawn in parts."""

    def __init__(self, parts: Iterator[FloatArray]) -> None:
        self._parts = parts
        self._ready: FloatArray = np.empty(0)

    def skip(self, records: int) -> None:
        while records and self._prepare(1):
            skipped = min(records, len(self._ready))
            self._ready = self._ready[skipped:]
            records -= skipped

    def take(self, t_s: float, most: int) -> FloatArray:
        while len(self._ready) < most and not (len(self._ready) and self._ready[-1] > t_s):
            if not self._prepare(len(self._ready) + 1):
                break
        count = min(most, int(np.searchsorted(self._ready, t_s, side="right")))
        taken, self._ready = self._ready[:count], self._ready[count:]
        return taken

    def next_s(self) -> float:
        return float(self._ready[0]) if self._prepare(1) else float("inf")

    def has_more(self, end_s: float) -> bool:
        return self.next_s() <= end_s

    def _prepare(self, records: int) -> bool:
        """Draw until this many records are ready; False if there are fewer."""
        while len(self._ready) < records:
            part = next(self._parts, None)
            if part is None:
                return False
            self._ready = np.concatenate((self._ready, part))
        return True
