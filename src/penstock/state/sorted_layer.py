"""A layer: immutable rows of one slice sorted by key hash, in memory or memory-mapped.

A layer is cut into chunks, so that a large one can be written and merged chunk by chunk. Rows with
equal hashes are in one chunk, and a key is in a layer at most once.

Timers: the watermark never falls, and the watermark of one batch is `before` in the next. Each
layer fires the timers in (before, watermark]; earlier ones have fired. The exception is a timer
that had already passed when it was set: a layer knows the watermark of the batch that wrote it
(`at`) and fires the timers up to it as well. The caller puts such rows again without a timer, so
that a newer layer hides them. A merge leaves no such timers, because it happens in a batch that
fires all timers of the layers it merges.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from penstock.state.chunk import Chunk
from penstock.state.keys import Columns, Places, take_all
from penstock.topics.hashing import Hashes


class SortedLayer:
    """Rows of one slice, sorted by hash. The place of a row is its number in the layer."""

    def __init__(self, chunks: Sequence[Chunk], at: int | None = None) -> None:
        self.chunks = tuple(chunk for chunk in chunks if len(chunk))
        #: The watermark of the batch that wrote it: timers up to it were due when they were set
        #: and have not fired. None if there are no such timers.
        self.at = at
        self._firsts = np.array([chunk.hashes[0] for chunk in self.chunks], np.uint64)
        self._ends = np.cumsum([0, *map(len, self.chunks)])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def find(self, hashes: Hashes, keys: Columns) -> Places:
        """Return the place of each key, or -1."""
        if len(self.chunks) == 1:
            return self.chunks[0].find(hashes, keys)
        positions = np.full(len(hashes), -1, np.int64)
        chunk_of = np.searchsorted(self._firsts, hashes, side="right") - 1
        for number, rows in _groups(chunk_of):
            if number >= 0:
                inside = self.chunks[number].find(hashes[rows], take_all(keys, rows))
                positions[rows] = np.where(inside < 0, -1, inside + self._ends[number])
        return positions

    def at_places(self, places: Places) -> Iterator[tuple[Chunk, Places, Places]]:
        """Yield for all places but -1: a chunk, rows in it, and the indices of their places."""
        rows = np.flatnonzero(places >= 0)
        for number, some in _groups(np.searchsorted(self._ends, places[rows], side="right") - 1):
            yield self.chunks[number], places[rows[some]] - self._ends[number], rows[some]

    def due(self, low: int | None, high: int) -> Iterator[Chunk]:
        """Yield rows with low < timer <= high, and those that were due when they were set."""
        for chunk in self.chunks:
            due_places = [chunk.due(low, high)]
            if low is not None and self.at is not None:
                due_places.append(chunk.due(None, min(low, self.at)))
            if len(places := np.concatenate(due_places)):
                yield chunk.take(np.sort(places))


def due_rows(
    layers: Sequence[SortedLayer], low: int | None, high: int | None, keys: int
) -> list[Chunk]:
    """Return the rows of these layers with low < timer <= high, if no newer layer has their keys.

    Without low there are no earlier timers; without high there is no event time yet.
    """
    if high is None:
        return []
    due = []
    for number, layer in enumerate(layers):
        for chunk in layer.due(low, high):
            due += not_hidden([chunk], layers[:number], keys)
    return due


def not_hidden(chunks: Sequence[Chunk], newer: Sequence[SortedLayer], keys: int) -> list[Chunk]:
    """Return the rows whose keys are in none of the newer layers."""
    left = []
    for chunk in chunks:
        for layer in newer:
            inside = layer.find(chunk.hashes, chunk.rows.columns[:keys])
            chunk = chunk.take(np.flatnonzero(inside < 0))
        if len(chunk):
            left.append(chunk)
    return left


def _groups(numbers: Places) -> Iterator[tuple[int, Places]]:
    """Yield each distinct number with the rows that have it."""
    if not len(numbers):
        return
    if (numbers == numbers[0]).all():  # most layers have one chunk
        yield int(numbers[0]), np.arange(len(numbers))
        return
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for start, end in pairwise([0, *cuts, len(order)]):
        yield int(ordered[start]), order[start:end]
