"""Merges layers into one stream: the newest row of each key, sorted by hash."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from penstock.state.chunk import Chunk, Flags, Times, join, same
from penstock.state.keys import winners
from penstock.state.layout import NEVER
from penstock.state.sorted_layer import SortedLayer


@dataclass(frozen=True, slots=True, kw_only=True)
class Age:
    """Time to live: rows expire `ttl_us` after their last put, in event time.

    A row with a timer lives until the timer has fired; timers up to `fired_up_to` have.
    """

    ttl_us: int | None = None
    watermark: int | None = None
    fired_up_to: int | None = None

    def is_over(self, seen: Times, timers: Times) -> Flags:
        """Return which rows have expired."""
        if self.ttl_us is None or self.watermark is None:
            return same(False, len(seen))
        over: Flags = seen <= self.watermark - self.ttl_us
        waiting = timers != NEVER
        if self.fired_up_to is not None:
            waiting &= timers > self.fired_up_to
        over &= ~waiting
        return over


def newest(chunks: Sequence[Chunk], keys: int) -> Chunk:
    """Merge chunks in memory, newest first; the first columns are the key."""
    if len(chunks) == 1:
        return chunks[0]
    joined = join(chunks)
    return joined.take(winners(joined.hashes, joined.rows.columns[:keys], last=False))


def merge(layers: Sequence[SortedLayer], keys: int) -> Iterator[Chunk]:
    """Yield the newest row of every key, by hash.

    At most one chunk of each layer is in memory at a time: all cursors advance to the smallest
    last hash of the current chunks.
    """
    cursors = [_Cursor(layer.chunks) for layer in layers]
    while waiting := [cursor for cursor in cursors if not cursor.done]:
        upto = min(cursor.last for cursor in waiting)
        parts = [part for cursor in waiting if len(part := cursor.advance(upto))]
        yield newest(parts, keys)


def live(chunk: Chunk, age: Age) -> Chunk:
    """Return the rows that are neither deleted nor expired."""
    dead = chunk.gone | age.is_over(chunk.seen, chunk.timers)
    return chunk.take(np.flatnonzero(~dead)) if dead.any() else chunk


class _Cursor:
    """Iterates over the chunks of a layer."""

    def __init__(self, chunks: Sequence[Chunk]) -> None:
        self._chunks, self._number, self._row = chunks, 0, 0

    @property
    def done(self) -> bool:
        return self._number == len(self._chunks)

    @property
    def last(self) -> np.uint64:
        """The last hash of the current chunk."""
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
