"""Labels of the dynamic program behind hindsight, and the removal of dominated ones.

A label is a reachable state: a rung, the cost so far, the backlog. On the same rung, less cost and
less backlog are never worse, so only labels that no other one dominates are kept.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

#: Maximum labels per rung; above it, labels are left out at even distances.
MAX_LABELS = 96


class Labels(NamedTuple):
    """Labels sorted by rung and rising cost (prices times ticks), with falling backlog."""

    rung: IntArray
    cost: IntArray
    backlog: FloatArray

    def of(self, which: Any) -> "Labels":
        """Return some labels, by mask or index."""
        return Labels(self.rung[which], self.cost[which], self.backlog[which])


def keep_unbeaten(parts: list[Labels], rungs: int) -> Labels:
    """Keep the labels that no other label of their rung beats in cost and backlog."""
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
    """Keep at most `MAX_LABELS` per rung, including the cheapest and that with least backlog."""
    count = np.bincount(labels.rung)
    if count.max() <= MAX_LABELS:
        return labels
    last = np.cumsum(count) - 1
    to_last = last[labels.rung] - np.arange(len(labels.rung))
    keep = to_last % -(-count // MAX_LABELS)[labels.rung] == 0
    keep[(last - count + 1)[count > 0]] = True
    return labels.of(keep)
