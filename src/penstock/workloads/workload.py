"""Workload: how many records are offered at every second, and exactly how many in all.

>>> load = Workload.of_steps([1, 2], step_s=1.5)
>>> load.rate(1.0), load.rate(2.0), load.rate(3.0)
(1.0, 2.0, 0.0)
>>> load.count(0, 1), load.count(1, 2), load.count(2, 3), load.count(0, 3)
(1, 1, 2, 4)
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from penstock.errors import InputError
from penstock.workloads.piecewise import FloatArray, Pieces, add

IntArray = NDArray[np.int64]

#: A record that float noise keeps from being whole is whole: a billionth, and a few last bits.
_NOISE = 1e-9
_LAST_BITS = 8 * 2.0**-52
#: Records/s; two months of more could not be counted one by one.
MAX_RATE = 1e12


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A rate from second 0 on, in straight pieces; nothing before it and after its end.

    `a + b` is both at once, `a * 0.5` has half the rates, `a.then(b)` is one after the other.

    Whole records become due one after the other: by second `t` as many as the
    integral of the rate up to `t`, rounded down. The count of an interval is the
    difference of two such numbers, so however the time is cut, no part of a record is
    lost or counted twice.
    """

    #: Where pieces begin and end: 0 first, the duration last.
    edges_s: tuple[float, ...]
    #: Rate at the start of each piece, records/s.
    starts: tuple[float, ...]
    #: Rate at the end of each piece, records/s.
    ends: tuple[float, ...]
    _totals: tuple[float, ...] = field(init=False, repr=False, compare=False)
    _pieces: Pieces = field(init=False, repr=False, compare=False)
    _total_array: FloatArray = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pieces = Pieces(*(np.array(v, float) for v in (self.edges_s, self.starts, self.ends)))
        _check(pieces)
        totals = pieces.totals()
        object.__setattr__(self, "_pieces", pieces)
        object.__setattr__(self, "_total_array", totals)
        object.__setattr__(self, "_totals", tuple(totals.tolist()))

    # --- three ways to make one

    @classmethod
    def of_pieces(cls, pieces: Pieces) -> "Workload":
        """Make one from arrays."""
        edges, starts, ends = (tuple(array.tolist()) for array in pieces)
        return cls(edges_s=edges, starts=starts, ends=ends)

    @classmethod
    def of_steps(cls, rates: Iterable[float], step_s: float = 60.0) -> "Workload":
        """Make one that holds each rate for `step_s` seconds."""
        levels = tuple(float(rate) for rate in rates)
        edges = tuple(index * step_s for index in range(len(levels) + 1))
        return cls(edges_s=edges, starts=levels, ends=levels)

    @classmethod
    def of_points(cls, times_s: Iterable[float], rates: Iterable[float]) -> "Workload":
        """Make one that runs straight from point to point; two at one time make a jump."""
        points = list(zip(times_s, rates, strict=True))
        parts = [(start, end) for start, end in pairwise(points) if end[0] > start[0]]
        return cls(
            edges_s=(*(float(start[0]) for start, _ in parts), float(points[-1][0])),
            starts=tuple(float(start[1]) for start, _ in parts),
            ends=tuple(float(end[1]) for _, end in parts),
        )

    # --- what it is

    @property
    def duration_s(self) -> float:
        """The end in seconds."""
        return self.edges_s[-1]

    @property
    def peak_rate(self) -> float:
        """The highest rate that is ever offered, records/s."""
        return max(max(self.starts), max(self.ends))

    @property
    def mean_rate(self) -> float:
        """Mean over the whole duration, records/s."""
        return self._totals[-1] / self.duration_s

    @property
    def total_records(self) -> int:
        """Whole records over the whole duration."""
        return _whole(self._totals[-1])

    # --- the rate and its integral at one time, or at many

    def rate(self, t_s: float) -> float:
        """Return the rate at second `t_s`, records/s; at a jump, the rate after it."""
        if not 0 <= t_s < self.duration_s:
            return 0.0
        at = bisect_right(self.edges_s, t_s) - 1
        start, end = self.starts[at], self.ends[at]
        if start == end:
            return start
        share = (t_s - self.edges_s[at]) / (self.edges_s[at + 1] - self.edges_s[at])
        return start + (end - start) * share

    def integral(self, t_s: float) -> float:
        """Return the records offered up to second `t_s`, with their fraction."""
        if t_s <= 0:
            return 0.0
        if t_s >= self.duration_s:
            return self._totals[-1]
        at = bisect_right(self.edges_s, t_s) - 1
        start, rise = self.starts[at], self.ends[at] - self.starts[at]
        into = t_s - self.edges_s[at]
        share = into / (self.edges_s[at + 1] - self.edges_s[at])
        return min(self._totals[at] + into * (start + rise * share / 2), self._totals[at + 1])

    def integrals(self, times_s: FloatArray) -> FloatArray:
        """Return `integral` for many times at once, bit for bit."""
        return self._pieces.integrals(np.asarray(times_s, float), self._total_array)

    def when(self, records: FloatArray) -> FloatArray:
        """Return the second at which each number of records has been offered, or infinity."""
        return self._pieces.when(np.asarray(records, float), self._total_array)

    # --- whole records

    def count(self, t0_s: float, t1_s: float) -> int:
        """Return the whole records that become due after `t0_s` and up to `t1_s`."""
        return _whole(self.integral(t1_s)) - _whole(self.integral(t0_s))

    def counts(
        self, duration_s: float | None = None, step_s: float = 1.0, *, begin_s: float = 0.0
    ) -> IntArray:
        """Return the whole records of each step from `begin_s` on.

        If the steps do not fill the duration, the last one is shorter.

        >>> Workload.of_steps([2.5]).counts(4).tolist()
        [2, 3, 2, 3]
        """
        length_s = self.duration_s - begin_s if duration_s is None else duration_s
        totals = self.integrals(begin_s + _grid(length_s, step_s))
        due = np.floor(totals + (_NOISE + totals * _LAST_BITS))
        return np.diff(due).astype(np.int64)

    def mean_rates(self, step_s: float = 60.0) -> FloatArray:
        """Return the mean rate of each step, records/s; for minute patterns, their list."""
        grid = _grid(self.duration_s, step_s)
        pieces = self._pieces.on(np.union1d(self._pieces.edges_s, grid))
        if np.array_equal(pieces.edges_s, grid) and np.array_equal(pieces.starts, pieces.ends):
            return pieces.starts
        return np.diff(self.integrals(grid)) / np.diff(grid)

    # --- operations

    def __add__(self, other: "Workload") -> "Workload":
        """Both at once; as long as the longer one."""
        return Workload.of_pieces(add(self._pieces, other._pieces))

    def __mul__(self, factor: float) -> "Workload":
        """Every rate times a factor."""
        if not 0 <= factor <= MAX_RATE:
            raise InputError("factor", f"must be finite and at least 0, got {factor}")
        edges, starts, ends = self._pieces
        return Workload.of_pieces(Pieces(edges, starts * factor, ends * factor))

    __rmul__ = __mul__

    def then(self, other: "Workload") -> "Workload":
        """This one, and when it ends, the other."""
        edges = self.edges_s + tuple(self.duration_s + edge for edge in other.edges_s[1:])
        return Workload(
            edges_s=edges, starts=self.starts + other.starts, ends=self.ends + other.ends
        )

    def sped_up(self, factor: float) -> "Workload":
        """The same rates in a `factor`-th of the time."""
        if not 1 / MAX_RATE <= factor <= MAX_RATE:
            raise InputError("speed_up", f"must be finite and above 0, got {factor}")
        edges, starts, ends = self._pieces
        return Workload.of_pieces(Pieces(edges / factor, starts, ends))

    def between(self, t0_s: float, t1_s: float) -> "Workload":
        """The part from `t0_s` to `t1_s`, which become its second 0 and its end.

        Beyond the end of this workload the rate is 0.
        """
        own = self._pieces.edges_s
        edges = np.concatenate(([t0_s], own[(own > t0_s) & (own < t1_s)], [t1_s]))
        part = self._pieces.on(edges)
        return Workload.of_pieces(part._replace(edges_s=edges - t0_s))

    def plus_steps(self, steps: Iterable[float], step_s: float = 60.0) -> "Workload":
        """Add a number to the rate of each step; it may be negative, the rate stays at least 0."""
        levels = np.array(list(steps), float)
        edges = np.arange(len(levels) + 1, dtype=np.float64) * step_s
        both = add(self._pieces, Pieces(edges, levels, levels)).above_zero()
        return Workload.of_pieces(both).between(0, self.duration_s)


def _check(pieces: Pieces) -> None:
    edges, starts, ends = pieces
    if not len(starts) or len(starts) != len(ends) or len(edges) != len(starts) + 1:
        raise InputError("workload", "must have one edge more than pieces, and one piece at least")
    if edges[0] != 0 or not np.all(np.diff(edges) > 0) or not np.isfinite(edges[-1]):
        raise InputError("workload", "times must begin at 0 and increase")
    for rates in (starts, ends):
        is_invalid = ~np.isfinite(rates) | (rates < 0)
        if is_invalid.any():
            value = rates[np.argmax(is_invalid)]
            raise InputError("rate", f"must be finite and at least 0, got {value:g}")
        if rates.max() > MAX_RATE:
            raise InputError("rate", f"must be at most {MAX_RATE:g} records/s, got {rates.max():g}")


def _whole(records: float) -> int:
    return math.floor(records + (_NOISE + records * _LAST_BITS))


def _grid(duration_s: float, step_s: float) -> FloatArray:
    """Return the edges of all steps; the last step ends with the duration."""
    steps = math.ceil(duration_s / step_s - _NOISE)
    grid = np.arange(steps + 1, dtype=np.float64) * step_s
    grid[-1] = duration_s
    return grid
