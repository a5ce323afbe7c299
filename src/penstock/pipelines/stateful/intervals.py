"""Intervals of time that lie less than a gap apart, many keys at once."""

import numpy as np
from numpy.typing import NDArray

from penstock.pipelines.stateful.groups import Groups, Numbers


def merge_close(key: Numbers, start: Numbers, last: Numbers, gap: int) -> Groups:
    """Group intervals [start, last] of a key that lie less than a gap apart, one by one.

    >>> merge_close(np.zeros(3, int), np.array([20, 0, 9]), np.array([20, 0, 11]), gap=10).of
    array([0, 0, 0])
    >>> merge_close(np.zeros(3, int), np.array([20, 0, 9]), np.array([20, 0, 10]), gap=10).of
    array([1, 0, 0])
    """
    order = np.lexsort((start, key))
    key, start, last = key[order], start[order], last[order]
    # how far all before reach: ranks, so that one key cannot reach into the next
    by_last = np.lexsort((last, key))
    rank = np.empty_like(by_last)
    rank[by_last] = np.arange(len(rank))
    reach = last[by_last[np.maximum.accumulate(rank)]]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (key[1:] != key[:-1]) | (start[1:] - reach[:-1] >= gap)
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(begins) - 1
    return Groups(of, order[begins])


def touches(
    key: Numbers, time: Numbers, intervals: tuple[Numbers, Numbers, Numbers], gap: int
) -> NDArray[np.bool_]:
    """Tell which times lie in an interval of their key, or less than a gap from it.

    Intervals are (key, start, last), and those of one key have nothing in common.

    >>> closed = (np.array([0, 1]), np.array([10, 0]), np.array([20, 0]))
    >>> touches(np.zeros(4, int), np.array([5, 6, 24, 25]), closed, gap=5)
    array([False,  True,  True, False])
    """
    owner, start, last = intervals
    if not len(owner):
        return np.zeros(len(key), np.bool_)
    order = np.lexsort((np.concatenate([start, time]), np.concatenate([owner, key])))
    place, known = np.arange(len(order)), order < len(owner)
    before = np.maximum.accumulate(np.where(known, place, -1))
    behind = np.minimum.accumulate(np.where(known, place, len(order))[::-1])[::-1]
    found = np.zeros(len(order), np.bool_)
    # the nearest interval that begins before, and the nearest that begins behind
    for nearest, there in ((before, before >= 0), (behind, behind < len(order))):
        point = order[there & ~known] - len(owner)
        interval = order[nearest[there & ~known]]
        close = (time[point] - last[interval] < gap) & (start[interval] - time[point] < gap)
        found[point] |= close & (owner[interval] == key[point])
    return found[: len(key)]
