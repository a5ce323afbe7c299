"""Intervals of time that lie less than a gap apart, many keys at once."""

import numpy as np

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
