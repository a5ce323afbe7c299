"""Labels of the dynamic program behind hindsight, and which of them are worth keeping.

A label says: on this rung, for this cost, so much waits. Less cost and less backlog on the same
rung are never worse, so only those labels are kept that no other one beats in both.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Labels kept for each rung; where there would be more, some are left out at even distances.
MAX_LABELS = 96


class Labels(NamedTuple):
    """Labels by rung and rising cost (in prices times ticks), backlog falling."""

    rung: IntArray
    cost: IntArray
    backlog: FloatArray

    def of(self, which: Any) -> "Labels":
        """Some of them, by mask or place."""
        return Labels(self.rung[which], self.cost[which], self.backlog[which])


def keep_unbeaten(parts: list[Labels], rungs: int) -> Labels:
    """Labels that no other one of their rung beats in cost and in backlog."""
    rung, cost, backlog = (np.concatenate(part) for part in zip(*parts, strict=True))
    if not len(rung):
        return Labels(rung, cost, backlog)
    base = np.full(rungs, np.iinfo(np.int64).max)
    np.minimum.at(base, rung, cost)
    extra = cost - base[rung]
    width = int(extra.max()) + 1
    least = np.full(rungs * width, np.inf)
    np.minimum.at(least, rung * width + extra, backlog)
    least = np.minimum.accumulate(least.reshape(rungs, width), axis=1)
    better = np.isfinite(least)
    better[:, 1:] &= least[:, 1:] < least[:, :-1]
    kept, place = np.nonzero(better)
    return _thin(Labels(kept, base[kept] + place, least[kept, place]))


def _thin(labels: Labels) -> Labels:
    """At most so many labels a rung; the cheapest and the one with the least backlog stay."""
    count = np.bincount(labels.rung)
    if count.max() <= MAX_LABELS:
        return labels
    last = np.cumsum(count) - 1
    to_last = last[labels.rung] - np.arange(len(labels.rung))
    keep = to_last % -(-count // MAX_LABELS)[labels.rung] == 0
    keep[(last - count + 1)[count > 0]] = True
    return labels.of(keep)
