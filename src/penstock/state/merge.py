"""Several levels as one: the newest row of each key, in the order of the hash, piece by piece."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.state.chunk import Chunk, Flags, Times, join, same
from penstock.state.keys import winners
from penstock.state.layout import NEVER
from penstock.state.sorted_layer import SortedLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """When rows vanish by themselves: so long after their last put, in event time.

    A row with a timer lives until the timer was told, however long that takes; the timers up
    to `told` have been.
    """

    ttl_us: int | None = None
    watermark: int | None = None
    told: int | None = None

    def is_over(self, seen: Times, timers: Times) -> Flags:
        """Return which rows are past their time."""
        if self.ttl_us is None or self.watermark is None:
            return same(False, len(seen))
        over: Flags = seen <= self.watermark - self.ttl_us
        waiting = timers != NEVER
        if self.told is not None:
            waiting &= timers > self.told
        over &= ~waiting
        return over


def newest(chunks: Sequence[Chunk], keys: int) -> Chunk:
    """Merge chunks in memory, newest first; the first columns are the key."""
    if len(chunks) == 1:
        return chunks[0]
    joined = join(chunks)
    return joined.take(winners(joined.hashes, joined.rows.columns[:keys], last=False))


def merge(levels: Sequence[SortedLayer], keys: int) -> Iterator[Chunk]:
    """Yield the newest row of every key, by hash.

    No more than one chunk of each level is in memory at a time: all levels go on to where the
    first of their present chunks ends.
    """
    cursors = [_Cursor(level.chunks) for level in levels]
    while waiting := [cursor for cursor in cursors if not cursor.done]:
        upto = min(cursor.last for cursor in waiting)
        parts = [part for cursor in waiting if len(part := cursor.advance(upto))]
        yield newest(parts, keys)


def live(chunk: Chunk, age: Age) -> Chunk:
    """Leave out what is gone and what is past its time."""
    dead = chunk.gone | age.is_over(chunk.seen, chunk.timers)
    return chunk.take(np.flatnonzero(~dead)) if dead.any() else chunk


class _Cursor:
    """Goes through the chunks of a level."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks, self._number, self._row = chunks, 0, 0

    @property
    def done(self) -> bool:
        return self._number == len(self._chunks)

    @property
    def last(self) -> np.uint64:
        """The last hash of the present chunk."""
        last: np.uint64 = self._chunks[self._number].hashes[-1]
        return last

    def advance(self, upto: np.uint64) -> Chunk:
        """Return the rows of the present chunk up to this hash, and go on behind them."""
        chunk = self._chunks[self._number]
        start, end = self._row, int(np.searchsorted(chunk.hashes, upto, side="right"))
        self._row = end
        if end == len(chunk):
            self._number, self._row = self._number + 1, 0
        return chunk.slice(start, end)
