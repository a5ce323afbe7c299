"""Tumbling and sliding windows: counts and sums by key and window, emitted when a window closes.

A window [start, end) closes when the watermark reaches its end. A row is late if all of its windows
are closed.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pipelines.stateful.columns import (
    Names,
    micros_of,
    names_of,
    output_of,
)
from penstock.pipelines.stateful.groups import Columns, Numbers, columns_of, group_rows, take
from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.pipelines.stateful.totals import STAMP, plus, total, total_again, total_fields
from penstock.pipelines.stateful.watermark import split_late, times_of
from penstock.state.handle import State
from penstock.state.layout import TIMER
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT

START, END = pa.field("start", TIMESTAMP), pa.field("end", TIMESTAMP)


def windows(
    by: Names = (),
    *,
    size_s: float,
    every_s: float | None = None,
    sums: Names = (),
    time: str = EVENT,
) -> "Windows":
    """Count rows and sum columns by key in windows of size_s that start every every_s.

    Without every_s windows do not overlap; without a key all rows are counted together, in one
    slice. The output has the key, start, end, n, and sum_X for each column X.

    >>> from datetime import UTC, datetime
    >>> from penstock import try_batches, windows
    >>> batches = [[{"_event": datetime(2024, 1, 1, 0, 0, s, tzinfo=UTC)} for s in (1, 4, 19)], []]
    >>> [row] = try_batches(windows(size_s=10), batches, "user string").rows
    >>> row["start"].second, row["end"].second, row["n"]
    (0, 10, 2)
    """
    size = micros_of("size_s", size_s)
    every = size if every_s is None else micros_of("every_s", every_s)
    if every > size:
        problem = f"must be at most size_s {size_s}, got {every_s}"
        raise InputError("every_s", problem, "rows between two windows would be in none")
    return Windows(
        by=names_of("by", by, least=0),
        sums=names_of("sums", sums, least=0),
        size_us=size,
        every_us=every,
        time=time,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Windows(Ready):
    """See `windows`."""

    sums: tuple[str, ...] = ()
    size_us: int
    every_us: int

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Return the columns of state and output."""
        schema, key = self._rows_and_key(inputs)
        totals = total_fields(schema, self.sums)
        return Shape(
            state_key=[START],
            state=[*totals, STAMP],
            output=output_of([*key, START, END, *totals]),
        )

    def __call__(self, given: pa.RecordBatch, state: State) -> dict[str, Any] | None:
        """Add the rows of a slice to their windows; return the windows that close."""
        times = times_of(given, self.time)
        closes = times // self.every_us * self.every_us + self.size_us
        rows, times = split_late(given, times, closes, state)
        if rows.num_rows:
            self._add(rows, times, state)
        return self._closed(state)

    def _add(self, rows: pa.RecordBatch, times: Numbers, state: State) -> None:
        # rows of a pane are in the same windows: sum panes first, then add them to windows
        pane = math.gcd(self.size_us, self.every_us)
        panes = times // pane * pane
        key = columns_of(rows, self.by)
        groups = group_rows([*key.values(), pa.array(panes)], rows.num_rows)
        keys, starts = take(key, groups.first), panes[groups.first]
        totals = total(rows, self.sums, groups)
        if pane < self.size_us:
            keys, starts, totals = self._spread(keys, starts, totals, state)
        windows = keys | {START.name: pa.array(starts).cast(TIMESTAMP)}
        timers = pa.array(starts + self.size_us)
        state.put(windows | plus(state.get(windows), totals), timers)

    def _spread(
        self, keys: Columns, panes: Numbers, totals: Columns, state: State
    ) -> tuple[Columns, Numbers, Columns]:
        """Add panes to their open windows."""
        most = -(-self.size_us // self.every_us)
        last = panes // self.every_us * self.every_us
        starts = (last[:, None] - self.every_us * np.arange(most)).ravel()
        owner = np.repeat(np.arange(len(panes)), most)
        open_ = starts + self.size_us > panes[owner]
        if state.watermark is not None:
            open_ &= starts + self.size_us > state.watermark
        starts, owner = starts[open_], owner[open_]
        keys = take(keys, owner)
        groups = group_rows([*keys.values(), pa.array(starts)], len(owner))
        totals = total_again(take(totals, owner), groups)
        return take(keys, groups.first), starts[groups.first], totals

    def _closed(self, state: State) -> dict[str, Any] | None:
        due = state.due()
        if not due.num_rows:
            return None
        state.delete(due.select([*self.by, START.name]))
        rows = columns_of(due, [name for name in due.schema.names if name != TIMER])
        return rows | {END.name: due.column(TIMER).cast(TIMESTAMP)}
