"""Pieces of straight line: the array arithmetic under every workload.

A rate over time is `n` pieces between `n + 1` edges; each piece runs straight from its
start to its end rate, and neighbours need not meet. Sums, multiples and sequences of
such rates have that form again, and their integrals are closed: nothing is sampled.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


class Pieces(NamedTuple):
    """Edges in seconds; rates in records/s, here of any sign."""

    edges_s: FloatArray
    starts: FloatArray
    ends: FloatArray

    def totals(self) -> FloatArray:
        """Return the integral from the first edge up to each edge."""
        # the same operations in the same order as `integrals` does at the end of a piece
        areas = np.diff(self.edges_s) * (self.starts + (self.ends - self.starts) / 2)
        return np.concatenate(([0.0], np.cumsum(areas)))

    def integrals(self, times_s: FloatArray, totals: FloatArray) -> FloatArray:
        """Return the integral from the first edge up to each time; none before or after."""
        times = np.clip(times_s, self.edges_s[0], self.edges_s[-1])
        at = np.minimum(np.searchsorted(self.edges_s, times, "right") - 1, len(self.starts) - 1)
        into = times - self.edges_s[at]
        share = into / (self.edges_s[at + 1] - self.edges_s[at])
        rise = self.ends[at] - self.starts[at]
        # rounding must not carry a time inside a piece past the total at its end
        reached = totals[at] + into * (self.starts[at] + rise * share / 2)
        capped: FloatArray = np.minimum(reached, totals[at + 1])
        return capped

    def when(self, records: FloatArray, totals: FloatArray) -> FloatArray:
        """Return the earliest time at which the integral reaches each number; inverse of it.

        Numbers beyond the last total are never reached: infinity.
        """
        at = np.clip(np.searchsorted(totals, records, "left") - 1, 0, len(self.starts) - 1)
        missing = np.maximum(records - totals[at], 0.0)
        length = self.edges_s[at + 1] - self.edges_s[at]
        slope = (self.ends[at] - self.starts[at]) / length
        # missing = start·x + slope·x²/2, solved in the form that stays exact for slope 0
        root = np.sqrt(np.maximum(self.starts[at] ** 2 + 2 * slope * missing, 0.0))
        below = self.starts[at] + root
        into = np.divide(2 * missing, below, out=np.zeros_like(missing), where=below > 0)
        times = self.edges_s[at] + np.minimum(into, length)
        return np.where(records > totals[-1], np.inf, times)

    def on(self, edges_s: FloatArray) -> "Pieces":
        """Return the same rate cut at these edges, which must include those inside; else 0."""
        begin, end = edges_s[:-1], edges_s[1:]
        at = np.searchsorted(self.edges_s, begin, "right") - 1
        inside = (at >= 0) & (at < len(self.starts))
        at = np.clip(at, 0, len(self.starts) - 1)
        length = self.edges_s[at + 1] - self.edges_s[at]
        start, rise = self.starts[at], self.ends[at] - self.starts[at]
        starts = start + rise * ((begin - self.edges_s[at]) / length)
        ends = start + rise * ((end - self.edges_s[at]) / length)
        # an end that is kept stays what it was, to the last bit
        ends = np.where(end == self.edges_s[at + 1], self.ends[at], ends)
        return Pieces(edges_s, np.where(inside, starts, 0.0), np.where(inside, ends, 0.0))

    def above_zero(self) -> "Pieces":
        """Return the rate with everything below zero raised to zero."""
        crossing = np.nonzero(self.starts * self.ends < 0)[0]
        begin, end = self.edges_s[crossing], self.edges_s[crossing + 1]
        start, stop = self.starts[crossing], self.ends[crossing]
        zeros = begin + (end - begin) * (start / (start - stop))
        edges = np.insert(self.edges_s, crossing + 1, zeros)
        starts = np.maximum(np.insert(self.starts, crossing + 1, 0.0), 0.0)
        ends = np.maximum(np.insert(self.ends, crossing, 0.0), 0.0)
        real = np.diff(edges) > 0  # a crossing may round to the edge itself
        return Pieces(np.append(edges[:-1][real], edges[-1]), starts[real], ends[real])


def add(left: Pieces, right: Pieces) -> Pieces:
    """Return the sum of two rates; where only one of them is defined, the other counts 0."""
    edges = np.union1d(left.edges_s, right.edges_s)
    first, second = left.on(edges), right.on(edges)
    return Pieces(edges, first.starts + second.starts, first.ends + second.ends)
