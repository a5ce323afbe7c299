"""A chunk of a layer: rows sorted by key hash, with deletion marks, timers and ages."""

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
    """Rows sorted by hash; rows with equal hashes are in any order. Immutable.

    Most states have no timers and no time to live: `same` makes columns that take no memory.
    """

    hashes: Hashes
    #: Key columns, then value columns; a deleted row has only a key.
    rows: pa.RecordBatch
    gone: Flags
    #: Event time in microseconds at which the row is due, or `NEVER`.
    timers: Times
    #: Event time of the last put, or `NEVER` if the row does not age.
    seen: Times
    #: Row numbers sorted by timer; None where a scan is fast enough.
    order: NDArray[np.uint32] | None = None

    def __len__(self) -> int:
        return len(self.hashes)

    def slice(self, start: int, end: int) -> "Chunk":
        """Return rows [start, end), without a copy."""
        return Chunk(
            hashes=self.hashes[start:end],
            rows=self.rows.slice(start, end - start),
            gone=self.gone[start:end],
            timers=self.timers[start:end],
            seen=self.seen[start:end],
        )

    def take(self, places: Places) -> "Chunk":
        """Return these rows, in this order."""
        return Chunk(
            hashes=self.hashes[places],
            rows=self.rows.take(pa.array(places)),
            gone=take(self.gone, places),
            timers=take(self.timers, places),
            seen=take(self.seen, places),
        )

    def without_timers(self) -> "Chunk":
        """Return the same rows without timers."""
        return replace(self, timers=same(NEVER, len(self)), order=None)

    def find(self, hashes: Hashes, keys: Columns) -> Places:
        """Return the row of each key, or -1."""
        rows_of_hash = np.full(len(hashes), -1, np.int64)
        place = np.searchsorted(self.hashes, hashes)
        rows = np.flatnonzero(self.hashes[np.minimum(place, len(self) - 1)] == hashes)
        mine = self.rows.columns[: len(keys)]
        while len(rows):
            wanted_keys = keys if len(rows) == len(hashes) else take_all(keys, rows)
            equal = same_keys(take_all(mine, place[rows]), wanted_keys)
            rows_of_hash[rows[equal]] = place[rows[equal]]
            # another key with this hash: try the next row, while its hash is the same
            rows = rows[~equal]
            place[rows] += 1
            rows = rows[place[rows] < len(self)]
            rows = rows[self.hashes[place[rows]] == hashes[rows]]
        return rows_of_hash

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
    """Concatenate chunks; the result need not be sorted."""
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
    """Return an empty chunk with these columns."""
    (rows,) = schema.empty_table().to_batches() or [pa.RecordBatch.from_pylist([], schema)]
    return Chunk(
        hashes=np.zeros(0, np.uint64),
        rows=rows,
        gone=same(False, 0),
        timers=same(NEVER, 0),
        seen=same(NEVER, 0),
    )


def same(value: Any, rows: int) -> NDArray[Any]:
    """Return a column of equal values that takes the memory of one value."""
    single = np.asarray(value)
    single.setflags(write=False)
    return np.ndarray(rows, single.dtype, single, strides=(0,))


def is_same(column: NDArray[Any]) -> bool:
    """Whether this column was made by `same`."""
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
