"""A level: an immutable run of rows sorted by the hash of their key, in memory or mapped.

It is cut into chunks, so that a large one can be written and merged piece by piece. Rows with the
same hash lie in one chunk, and a key is in a level at most once.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from penstock.state.chunk import Chunk
from penstock.state.keys import Columns, Places, take_all
from penstock.topics.hashing import Hashes


class SortedLayer:
    """Rows of one slice by hash. A row has a place: its number in the level."""

    def __init__(self, chunks: Sequence[Chunk], at: int | None = None) -> None:
        self.chunks = tuple(chunk for chunk in chunks if len(chunk))
        #: The watermark of the batch that wrote it: timers up to here were due from the
        #: beginning, and nobody has told them. None if there are no such timers.
        self.at = at
        self._firsts = np.array([chunk.hashes[0] for chunk in self.chunks], np.uint64)
        self._ends = np.cumsum([0, *map(len, self.chunks)])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def find(self, hashes: Hashes, keys: Columns) -> Places:
        """Return the place of each key, or -1."""
        if len(self.chunks) == 1:
            return self.chunks[0].find(hashes, keys)
        found = np.full(len(hashes), -1, np.int64)
        chunk_of = np.searchsorted(self._firsts, hashes, side="right") - 1
        for number, rows in _groups(chunk_of):
            if number >= 0:
                inside = self.chunks[number].find(hashes[rows], take_all(keys, rows))
                found[rows] = np.where(inside < 0, -1, inside + self._ends[number])
        return found

    def at_places(self, places: Places) -> Iterator[tuple[Chunk, Places, Places]]:
        """For places that are not -1: a chunk, the rows in it, and which places they are."""
        rows = np.flatnonzero(places >= 0)
        for number, some in _groups(np.searchsorted(self._ends, places[rows], side="right") - 1):
            yield self.chunks[number], places[rows[some]] - self._ends[number], rows[some]

    def due(self, low: int | None, high: int) -> Iterator[Chunk]:
        """Rows with low < timer <= high, those that were due from the beginning, too."""
        for chunk in self.chunks:
            found = [chunk.due(low, high)]
            if low is not None and self.at is not None:
                found.append(chunk.due(None, min(low, self.at)))
            if len(places := np.concatenate(found)):
                yield chunk.take(np.sort(places))


def _groups(numbers: Places) -> Iterator[tuple[int, Places]]:
    """Each number with the rows that have it."""
    if not len(numbers):
        return
    if (numbers == numbers[0]).all():  # most levels have one chunk
        yield int(numbers[0]), np.arange(len(numbers))
        return
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    for start, end in pairwise([0, *cuts, len(order)]):
        yield int(ordered[start]), order[start:end]
