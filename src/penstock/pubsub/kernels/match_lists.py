"""The result of a kernel: for each publication, the numbers of matching subscriptions."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pubsub.arrays import Integers, Numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchLists:
    """Numbers of all publications one after the other, and where each list begins."""

    #: One more than publications.
    offsets: Integers
    numbers: Numbers

    def to_arrow(self) -> pa.ListArray:
        """Return one list per publication, without a copy of the numbers."""
        return pa.ListArray.from_arrays(
            pa.array(self.offsets.astype(np.int32)), pa.array(self.numbers)
        )


def group_pairs(publications: Numbers, numbers: Numbers, count: int) -> MatchLists:
    """Group pairs by publication; the order within a publication stays.

    >>> pairs = np.array([1, 0, 1], np.uint32), np.array([5, 6, 7], np.uint32)
    >>> group_pairs(*pairs, 3).to_arrow().to_pylist()
    [[6], [5, 7], []]
    """
    # a radix sort, if the type is short enough
    keys = publications.astype(np.uint16) if count <= 2**16 else publications
    order = np.argsort(keys, kind="stable")
    return MatchLists(offsets=find_offsets(publications, count), numbers=numbers[order])


def find_offsets(publications: Numbers | Integers, count: int) -> Integers:
    """Return where the list of each publication begins, from the publication of every pair."""
    counts = np.bincount(publications, minlength=count)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)


def concatenate_lists(parts: Sequence[MatchLists]) -> MatchLists:
    """Return the lists of several blocks of publications as one."""
    starts = np.cumsum([0, *(len(part.numbers) for part in parts)])
    offsets = [part.offsets[:-1] + start for part, start in zip(parts, starts, strict=False)]
    return MatchLists(
        offsets=np.concatenate([*offsets, starts[-1:]]).astype(np.int64),
        numbers=np.concatenate([np.empty(0, np.uint32), *(part.numbers for part in parts)]),
    )


def join_lists(first: pa.ListArray, second: pa.ListArray) -> pa.ListArray:
    """Return for each publication its first list, then its second one.

    >>> lists = [pa.array(part, pa.list_(pa.uint32())) for part in ([[1], [2]], [[], [3]])]
    >>> join_lists(*lists).to_pylist()
    [[1], [2, 3]]
    """
    offsets = [part.offsets.to_numpy() for part in (first, second)]
    counts = [np.diff(part) for part in offsets]
    ends = np.concatenate([[0], np.cumsum(counts[0] + counts[1])])
    numbers = np.empty(ends[-1], np.uint32)
    starts = (ends[:-1], ends[:-1] + counts[0])
    for part, own, count, start in zip((first, second), offsets, counts, starts, strict=True):
        places = np.arange(own[0], own[-1]) + np.repeat(start - own[:-1], count)
        numbers[places] = part.values.to_numpy()[own[0] : own[-1]]
    return MatchLists(offsets=ends, numbers=numbers).to_arrow()
