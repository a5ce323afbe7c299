"""`State`: what a user function reads and writes, for one slice in one batch.

Reads go through the layers, newest first; writes go into layers in memory on top of them. A state
sees its own puts at once. Layers below never change, so a batch that is repeated over the same
layers has the same result. `State` writes no files; `changes` returns what the batch adds.

A timer fires once, on the first `due()` after the watermark passes it; see `sorted_layer.due_rows`.
If a batch never calls `due`, `changes` carries the due timers over to the next batch.

Time to live: a row expires when the watermark is `ttl_us` after its last put and none of its timers
is later than the watermark of the previous batch. An expired row is invisible, and the merge that
reaches the oldest layer removes it.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import uuid4

import numpy as np
import pyarrow as pa

from penstock.core.frozen_dict import FrozenDict
from penstock.state.chunk import Chunk, Times, join, none, same, take
from penstock.state.keys import Columns, take_all, winners
from penstock.state.layout import FOUND, NEVER, TIMER, Rows, StateLayout, make_layout, microseconds
from penstock.state.merge import Age, live, merge, newest
from penstock.state.sorted_layer import SortedLayer, due_rows, not_hidden
from penstock.topics.hashing import hash_keys


class State:
    """Keyed rows of one slice. Times are event times in microseconds.

    A function for `Pipeline.sliced` gets the rows of a slice and its state:

        def last_seen(batch, state):
            known = state.get(batch.select(["user"]))  # one row for each key
            state.put({"user": batch["user"], "page": batch["page"]})
            return {"user": batch["user"], "page": batch["page"], "before": known["page"]}
    """

    def __init__(
        self,
        columns: StateLayout,
        layers: Sequence[SortedLayer],
        *,
        slice: int,
        watermark: int | None,
        before: int | None,
        now: int | None,
        ttl_us: int | None,
        token: str,
        input_starts: Mapping[str, int],
        input_ends: Mapping[str, int],
    ) -> None:
        #: The number of the slice.
        self.slice = slice
        #: Identifies the content that the batch begins with: states with the same token hold the
        #: same rows. What a function derives from the state may be kept by it between batches.
        self.token = token
        #: By input topic: the offsets before the first and after the last row of this batch, for
        #: all slices together.
        self.input_starts, self.input_ends = input_starts, input_ends
        #: The watermark of this batch; None if there is none yet.
        self.watermark = watermark
        #: The watermark of the batch before.
        self.before = before
        #: Late rows, as they were passed to `late`.
        self.late_rows: list[pa.RecordBatch] = []
        self._layout, self._keys = columns, len(columns.key)
        self._mine: list[SortedLayer] = []
        self._below = tuple(layers)
        self._age = Age(ttl_us=ttl_us, watermark=watermark, fired_up_to=before)
        known = [time for time in (now, watermark) if time is not None]
        self._seen = max(known) if known and ttl_us is not None else NEVER
        self._has_fired = False
        #: Due rows of the layers below; None until they are looked up.
        self._due_cache: list[Chunk] | None = None

    @classmethod
    def open(
        cls,
        key: pa.Schema,
        values: pa.Schema,
        layers: Sequence[SortedLayer] = (),
        *,
        slice: int = 0,
        watermark: int | None = None,
        before: int | None = None,
        now: int | None = None,
        ttl_us: int | None = None,
        token: str = "",
        input_starts: Mapping[str, int] = FrozenDict(),
        input_ends: Mapping[str, int] = FrozenDict(),
    ) -> "State":
        """Open the state of a slice over its layers, newest first.

        `before` is the watermark of the previous batch. Rows put now live for `ttl_us` from `now`,
        the latest event time in the batch, or from the watermark if `now` is None. A row that is
        put when neither is known does not expire until it is put again. Without a `token` the
        state gets one that no other has.
        """
        return cls(
            make_layout(key, values),
            layers,
            slice=slice,
            watermark=watermark,
            before=before,
            now=now,
            ttl_us=ttl_us,
            token=token or uuid4().hex,
            input_starts=FrozenDict(input_starts),
            input_ends=FrozenDict(input_ends),
        )

    def get(self, keys: Rows) -> pa.RecordBatch:
        """Return the values of each key, nulls where there are none; `_found` says which are there.

        The result has one row for each key, in their order.
        """
        wanted = self._layout.take_keys(keys)
        hashes = hash_keys(wanted.columns)
        # values of the keys found so far, and for each key its position in them
        parts: list[pa.RecordBatch] = []
        size, places = 0, np.zeros(len(hashes), np.int64)
        has_row = np.zeros(len(hashes), np.bool_)
        # sorted like the layers, which uses caches better
        left = np.argsort(hashes)
        columns = take_all(wanted.columns, left)
        for layer in (*self._mine, *self._below):
            if not len(left):
                break
            inside = layer.find(hashes[left], columns)
            for chunk, rows, which in layer.at_places(inside):
                dead = take(chunk.gone, rows)
                dead = dead | self._age.is_over(take(chunk.seen, rows), take(chunk.timers, rows))
                places[left[which]] = np.arange(size, size + len(rows))
                has_row[left[which]] = ~dead
                parts.append(chunk.rows.select(self._layout.values.names).take(pa.array(rows)))
                size += len(rows)
            if (inside >= 0).any():
                left = left[inside < 0]
                columns = take_all(wanted.columns, left)
        return self._result(parts, pa.array(places, mask=~has_row), pa.array(has_row))

    def put(self, rows: Rows, timers: pa.Array | None = None) -> None:
        """Store rows, key and values; the last row of a key wins.

        `timers` are event times in microseconds, one for each row: `due` returns a row when the
        watermark has passed its timer. Without `timers` the keys lose their timers.
        """
        batch = self._layout.take_rows(rows)
        due = same(NEVER, len(batch)) if timers is None else microseconds(timers, len(batch))
        self._add(batch.columns, due, gone=False)

    def delete(self, keys: Rows) -> None:
        """Delete keys; missing ones are ignored."""
        rows = self._layout.take_keys(keys)
        empty = [pa.nulls(len(rows), field.type) for field in self._layout.values]
        self._add([*rows.columns, *empty], same(NEVER, len(rows)), gone=True)

    def due(self) -> pa.RecordBatch:
        """Return the rows whose timer the watermark has passed, sorted by timer; each fires once.

        The columns are key, values, and `_timer` in microseconds.
        """
        mine, below = self._due_here(), self._due_below()
        self._has_fired = True
        before = self.before
        overdue = [] if before is None else [_until(chunk, before) for chunk in below]
        for chunk in (*mine, *overdue):
            self._push(chunk.without_timers())
        due = join([none(self._layout.stored), *mine, *below])
        due = due.take(np.lexsort((due.hashes, due.timers)))
        return due.rows.append_column(TIMER, pa.array(due.timers))

    def is_due(self) -> bool:
        """Whether `due` would return rows; this fires no timer."""
        return bool(self._due_here() or self._due_below())

    def scan(self) -> Iterator[pa.RecordBatch]:
        """Yield all current rows, key and values, sorted by key hash."""
        for chunk in merge((*self._mine, *self._below), self._keys):
            if len(alive := live(chunk, self._age)):
                yield alive.rows

    def late(self, rows: pa.RecordBatch) -> None:
        """Report late rows: they are counted, and go to the topic `late_to` if there is one."""
        if rows.num_rows:
            self.late_rows.append(rows)

    def changes(self) -> SortedLayer | None:
        """Return all puts and deletes as one layer, or None if there are none."""
        for chunk in self._due_below():
            self._push(chunk)
        self._has_fired = True
        if not self._mine:
            return None
        merged = newest([layer.chunks[0] for layer in self._mine], self._keys)
        if not self._below:  # a deleted row has nothing to hide
            merged = live(merged, Age())
        return SortedLayer([merged], at=self.watermark) if len(merged) else None

    def _result(self, parts: Sequence[pa.RecordBatch], places: pa.Array, has_row: pa.Array) -> Any:
        """Return the values at these places; null for a null place."""
        columns = [
            pa.concat_arrays([part.column(n) for part in parts] or [pa.nulls(0, field.type)])
            for n, field in enumerate(self._layout.values)
        ]
        schema = self._layout.values.append(pa.field(FOUND, pa.bool_()))
        arrays = [*(column.take(places) for column in columns), has_row]
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
        """Add rows as the newest layer; layers of similar size are merged to keep them few."""
        if not len(chunk):
            return
        while self._mine and len(self._mine[0]) <= 2 * len(chunk):
            chunk = newest([chunk, self._mine.pop(0).chunks[0]], self._keys)
        self._mine.insert(0, SortedLayer([chunk]))

    def _due_below(self) -> list[Chunk]:
        """Return due rows of the layers that existed before this batch."""
        if self._has_fired:
            return []
        if self._due_cache is None:
            due = due_rows(self._below, self.before, self.watermark, self._keys)
            self._due_cache = [left for chunk in due if len(left := live(chunk, self._age))]
        return not_hidden(self._due_cache, self._mine, self._keys)

    def _due_here(self) -> list[Chunk]:
        """Return due rows that this batch has put."""
        return due_rows(self._mine, None, self.watermark, self._keys)


def _until(chunk: Chunk, time: int) -> Chunk:
    return chunk.take(np.flatnonzero(chunk.timers <= time))
