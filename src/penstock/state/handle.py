"""What a function gets to remember by: the state of one slice in one batch.

Reads go through the levels, newest first; writes go into levels in memory on top of them. So a
state sees its own puts at once, nothing below is ever changed, and a batch that is run again over
the same levels comes to the same end. It writes no files: `changes` is what the batch adds.

A timer is told once, by the first `due` that is asked when the watermark has reached it; `timers`
says how. If a batch never asks, `changes` takes along what is due, as if it were set now.

Time to live. A row is past it when the watermark is `ttl_us` after its last put, and no timer of it
lies after the watermark of the batch before. Then it is as if it were not there, and the merge that
reaches the oldest level removes it.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.state.chunk import Chunk, Times, join, none, same, take
from penstock.state.keys import Columns, take_all, winners
from penstock.state.layout import FOUND, NEVER, TIMER, Rows, StateLayout, make_layout, microseconds
from penstock.state.merge import Age, live, merge, newest
from penstock.state.sorted_layer import SortedLayer
from penstock.state.timers import due_rows, not_hidden
from penstock.topics.hashing import hash_keys


class State:
    """Keyed rows of one slice. Times are event times in microseconds."""

    def __init__(
        self,
        columns: StateLayout,
        levels: Sequence[SortedLayer],
        *,
        slice: int,
        watermark: int | None,
        before: int | None,
        now: int | None,
        ttl_us: int | None,
    ) -> None:
        self.slice = slice
        #: The watermark of this batch, and of the one before.
        self.watermark, self.before = watermark, before
        #: Rows that came too late, as they were handed to `late`.
        self.late_rows: list[pa.RecordBatch] = []
        self._layout, self._keys = columns, len(columns.key)
        self._mine: list[SortedLayer] = []
        self._below = tuple(levels)
        self._age = Age(ttl_us=ttl_us, watermark=watermark, told=before)
        known = [time for time in (now, watermark) if time is not None]
        self._seen = max(known) if known and ttl_us is not None else NEVER
        self._asked = False
        #: What `due` would tell of the levels below, once that was looked up.
        self._ripe: list[Chunk] | None = None

    @classmethod
    def open(
        cls,
        key: pa.Schema,
        values: pa.Schema,
        levels: Sequence[SortedLayer] = (),
        *,
        slice: int = 0,
        watermark: int | None = None,
        before: int | None = None,
        now: int | None = None,
        ttl_us: int | None = None,
    ) -> "State":
        """Open the state of a slice over its levels, newest first.

        `before` is the watermark of the batch before. Rows put now live for `ttl_us` from `now`
        on, the latest event time in the batch; without it, from the watermark on. A row that was
        put when neither was known does not age until it is put again.
        """
        return cls(
            make_layout(key, values),
            levels,
            slice=slice,
            watermark=watermark,
            before=before,
            now=now,
            ttl_us=ttl_us,
        )

    def get(self, keys: Rows) -> pa.RecordBatch:
        """Return the values of each key, nulls where there are none, and whether it was found."""
        asked = self._layout.take_keys(keys)
        hashes = hash_keys(asked.columns)
        # the values found so far, and which of them each key has
        parts: list[pa.RecordBatch] = []
        size, places = 0, np.zeros(len(hashes), np.int64)
        found = np.zeros(len(hashes), np.bool_)
        # in the order of the levels, which is kinder to caches
        left = np.argsort(hashes)
        columns = take_all(asked.columns, left)
        for level in (*self._mine, *self._below):
            if not len(left):
                break
            inside = level.find(hashes[left], columns)
            for chunk, rows, which in level.at_places(inside):
                dead = take(chunk.gone, rows)
                dead = dead | self._age.is_over(take(chunk.seen, rows), take(chunk.timers, rows))
                places[left[which]] = np.arange(size, size + len(rows))
                found[left[which]] = ~dead
                parts.append(chunk.rows.select(self._layout.values.names).take(pa.array(rows)))
                size += len(rows)
            if (inside >= 0).any():
                left = left[inside < 0]
                columns = take_all(asked.columns, left)
        return self._found(parts, pa.array(places, mask=~found), pa.array(found))

    def put(self, rows: Rows, timers: pa.Array | None = None) -> None:
        """Remember rows; the last row of a key wins. Without a timer the key has none any more."""
        batch = self._layout.take_rows(rows)
        due = same(NEVER, len(batch)) if timers is None else microseconds(timers, len(batch))
        self._add(batch.columns, due, gone=False)

    def delete(self, keys: Rows) -> None:
        """Forget keys, whether they are there or not."""
        asked = self._layout.take_keys(keys)
        empty = [pa.nulls(len(asked), field.type) for field in self._layout.values]
        self._add([*asked.columns, *empty], same(NEVER, len(asked)), gone=True)

    def due(self) -> pa.RecordBatch:
        """Return rows whose timer the watermark has reached, by timer; each timer once.

        Key and values, and `_timer` in microseconds.
        """
        mine, below = self._due_here(), self._due_below()
        self._asked = True
        before = self.before
        overdue = [] if before is None else [_until(chunk, before) for chunk in below]
        for chunk in (*mine, *overdue):
            self._push(chunk.without_timers())
        told = join([none(self._layout.stored), *mine, *below])
        told = told.take(np.lexsort((told.hashes, told.timers)))
        return told.rows.append_column(TIMER, pa.array(told.timers))

    def is_due(self) -> bool:
        """Would `due` tell anything? Asking this tells nothing."""
        return bool(self._due_here() or self._due_below())

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield all rows as they are now, key and values, by the hash of the key."""
        for chunk in merge((*self._mine, *self._below), self._keys):
            if len(alive := live(chunk, self._age)):
                yield alive.rows

    def late(self, rows: pa.RecordBatch) -> None:
        """Tell of rows that came too late."""
        if rows.num_rows:
            self.late_rows.append(rows)

    def changes(self) -> SortedLayer | None:
        """Return what was put and deleted as one level, or None if that is nothing."""
        for chunk in self._due_below():
            self._push(chunk)
        self._asked = True
        if not self._mine:
            return None
        merged = newest([level.chunks[0] for level in self._mine], self._keys)
        if not self._below:  # there is nothing that a row which is gone could hide
            merged = live(merged, Age())
        return SortedLayer([merged], at=self.watermark) if len(merged) else None

    def _found(self, parts: Sequence[pa.RecordBatch], places: pa.Array, found: pa.Array) -> Any:
        """Values from these places; where a place is null, nulls."""
        columns = [
            pa.concat_arrays([part.column(n) for part in parts] or [pa.nulls(0, field.type)])
            for n, field in enumerate(self._layout.values)
        ]
        schema = self._layout.values.append(pa.field(FOUND, pa.bool_()))
        arrays = [*(column.take(places) for column in columns), found]
        return pa.RecordBatch.from_arrays(arrays, schema=schema)

    def _add(self, columns: Columns, timers: Times, *, gone: bool) -> None:
        rows = pa.RecordBatch.from_arrays(columns, schema=self._layout.stored)
        if not len(rows):
            return
        keys = rows.columns[: self._keys]
        hashes = hash_keys(keys)
        chunk = Chunk(
            hashes=hashes,
            rows=rows,
            gone=same(gone, len(rows)),
            timers=timers,
            seen=same(self._seen, len(rows)),
        )
        self._push(chunk.take(winners(hashes, keys, last=True)))

    def _push(self, chunk: Chunk) -> None:
        """Lay rows on top; levels of about the same size become one, so that there are few."""
        if not len(chunk):
            return
        while self._mine and len(self._mine[0]) <= 2 * len(chunk):
            chunk = newest([chunk, self._mine.pop(0).chunks[0]], self._keys)
        self._mine.insert(0, SortedLayer([chunk]))

    def _due_below(self) -> list[Chunk]:
        """Rows that are due, of levels that were there before."""
        if self._asked:
            return []
        if self._ripe is None:
            ripe = due_rows(self._below, self.before, self.watermark, self._keys)
            self._ripe = [left for chunk in ripe if len(left := live(chunk, self._age))]
        return not_hidden(self._ripe, self._mine, self._keys)

    def _due_here(self) -> list[Chunk]:
        """Rows that are due, of this batch's own."""
        return due_rows(self._mine, None, self.watermark, self._keys)


def _until(chunk: Chunk, time: int) -> Chunk:
    return chunk.take(np.flatnonzero(chunk.timers <= time))
