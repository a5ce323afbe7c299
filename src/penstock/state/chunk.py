"""Rows of a level: sorted by the hash of their key, with what the state knows about each."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.state.keys import Columns, Places, same_keys, take_all
from penstock.state.layout import NEVER
from penstock.topics.hashing import Hashes

Times = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Rows by hash; those with the same hash in any order. Nothing in it is ever changed.

    Most states have no timers, or nothing that ages: see `same` for columns that take no room.
    """

    hashes: Hashes
    #: Key columns, then value columns; a row that is gone has a key only.
    rows: pa.RecordBatch
    gone: Flags
    #: Event time in microseconds at which the row is due, or `NEVER`.
    timers: Times
    #: Event time of the last put, or `NEVER` if the row does not age.
    seen: Times
    #: The rows by timer, where there are too many to look at each.
    order: NDArray[np.uint32] | None = None

    def __len__(self) -> int:
        return len(self.hashes)

    def slice(self, start: int, end: int) -> "Chunk":
        """Rows [start, end), without a copy."""
        return Chunk(
            hashes=self.hashes[start:end],
            rows=self.rows.slice(start, end - start),
            gone=self.gone[start:end],
            timers=self.timers[start:end],
            seen=self.seen[start:end],
        )

    def take(self, places: Places) -> "Chunk":
        """These rows, in this order."""
        return Chunk(
            hashes=self.hashes[places],
            rows=self.rows.take(pa.array(places)),
            gone=take(self.gone, places),
            timers=take(self.timers, places),
            seen=take(self.seen, places),
        )

    def without_timers(self) -> "Chunk":
        """The same rows, none of them due ever."""
        return replace(self, timers=same(NEVER, len(self)), order=None)

    def find(self, hashes: Hashes, keys: Columns) -> Places:
        """Return where each key is, or -1."""
        found = np.full(len(hashes), -1, np.int64)
        place = np.searchsorted(self.hashes, hashes)
        rows = np.flatnonzero(self.hashes[np.minimum(place, len(self) - 1)] == hashes)
        mine = self.rows.columns[: len(keys)]
        while len(rows):
            asked = keys if len(rows) == len(hashes) else take_all(keys, rows)
            equal = same_keys(take_all(mine, place[rows]), asked)
            found[rows[equal]] = place[rows[equal]]
            # another key with this hash: go on to the next row, while its hash is the same
            rows = rows[~equal]
            place[rows] += 1
            rows = rows[place[rows] < len(self)]
            rows = rows[self.hashes[place[rows]] == hashes[rows]]
        return found

    def due(self, low: int | None, high: int) -> Places:
        """Return the rows with low < timer <= high; without low, all up to high."""
        timers, order = self.timers, self.order
        if is_same(timers) and timers[0] == NEVER:
            return np.zeros(0, np.int64)
        if order is None:
            wanted = timers <= high
            return np.flatnonzero(wanted if low is None else wanted & (timers > low))
        end = bisect_right(order, high, key=timers.__getitem__)
        start = 0 if low is None else bisect_right(order, low, hi=end, key=timers.__getitem__)
        return order[start:end].astype(np.int64)


def join(chunks: Sequence[Chunk]) -> Chunk:
    """Put chunks one behind the other, whatever their order."""
    if len(chunks) == 1:
        return chunks[0]
    return Chunk(
        hashes=np.concatenate([chunk.hashes for chunk in chunks]),
        rows=pa.concat_batches([chunk.rows for chunk in chunks]),
        gone=_concatenate([chunk.gone for chunk in chunks]),
        timers=_concatenate([chunk.timers for chunk in chunks]),
        seen=_concatenate([chunk.seen for chunk in chunks]),
    )


def none(schema: pa.Schema) -> Chunk:
    """No rows of these columns."""
    (rows,) = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    return Chunk(
        hashes=np.zeros(0, np.uint64),
        rows=rows,
        gone=same(False, 0),
        timers=same(NEVER, 0),
        seen=same(NEVER, 0),
    )


def same(value: Any, rows: int) -> NDArray[Any]:
    """A column that holds one value in all its rows, and takes the room of one."""
    one = np.asarray(value)
    one.setflags(write=False)
    return np.ndarray(rows, one.dtype, one, strides=(0,))


def is_same(column: NDArray[Any]) -> bool:
    """Was this column made by `same`?"""
    return column.strides == (0,)


def take(column: NDArray[Any], places: Places) -> NDArray[Any]:
    """Return these rows of a column."""
    if is_same(column):
        return column[: len(places)] if len(places) <= len(column) else same(column[0], len(places))
    return column[places]


def _concatenate(columns: Sequence[NDArray[Any]]) -> NDArray[Any]:
    filled = [column for column in columns if len(column)]
    if filled and all(is_same(column) and column[0] == filled[0][0] for column in filled):
        return same(filled[0][0], sum(map(len, filled)))
    return np.concatenate(columns)
