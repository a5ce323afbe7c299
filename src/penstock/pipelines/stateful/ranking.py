"""Top-k: the rows with the largest values by key and window, emitted when the window closes.

Each stored row has a rank in its window, from 1 to k. Of equal values the first row ranks first.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pipelines.stateful.columns import (
    Names,
    column_of,
    micros_of,
    names_of,
    output_of,
)
from penstock.pipelines.stateful.groups import (
    Columns,
    Numbers,
    columns_of,
    expand,
    group_rows,
    pc,
    take,
)
from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.pipelines.stateful.time_windows import END, START
from penstock.pipelines.stateful.watermark import split_late, times_of
from penstock.state.handle import State
from penstock.state.layout import FOUND, TIMER
from penstock.topics.ddl import TIMESTAMP, type_text
from penstock.topics.schema import EVENT

_RANK = pa.field("rank", pa.int64())


def top(by: Names = (), *, k: int, of: str, size_s: float, time: str = EVENT) -> "Top":
    """Find the k rows with the largest values of a column, by key, in windows of size_s.

    Without a key it ranks all rows, in one slice: put another `top` with a key before it if
    there are many rows. The output has the key, start, end, rank, and the other columns
    of the input.

    >>> from datetime import UTC, datetime
    >>> from penstock import top, try_batches
    >>> when = [datetime(2024, 1, 1, 0, 0, s, tzinfo=UTC) for s in (1, 2, 3, 12)]
    >>> rows = [{"price": 7 * s.second % 10, "_event": s} for s in when]
    >>> tried = try_batches(top(k=2, of="price", size_s=10), [rows, []], "price int")
    >>> [(row["rank"], row["price"]) for row in tried.rows]
    [(1, 7), (2, 4)]
    """
    if isinstance(k, bool) or not isinstance(k, int) or k < 1:
        raise InputError("k", f"must be a whole number of at least 1, got {k!r}")
    (value,) = names_of("of", (of,))
    return Top(
        by=names_of("by", by, least=0),
        k=k,
        of=value,
        size_us=micros_of("size_s", size_s),
        time=time,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Top(Ready):
    """See `top`."""

    k: int
    of: str
    size_us: int

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Return the columns of state and output."""
        schema, key = self._rows_and_key(inputs)
        kind = column_of(schema, self.of, "of").type
        if self.of in self.by:
            raise InputError(
                "of", f"column {self.of!r} is the key: all rows of a key have the same"
            )
        if pa.types.is_nested(kind):
            raise InputError("of", f"column {self.of!r} is {type_text(kind)}, which has no order")
        others = [field for field in schema if field.name not in self.by]
        shown = [field for field in others if field.name != EVENT]
        return Shape(
            state_key=[START, _RANK],
            state=[field.with_nullable(True) for field in others],
            output=output_of([*key, START, END, _RANK, *shown]),
        )

    def __call__(self, given: pa.RecordBatch, state: State) -> dict[str, Any] | None:
        """Rank the rows of a slice in their windows; return the rows of closed windows."""
        times = times_of(given, self.time)
        closes = times // self.size_us * self.size_us + self.size_us
        rows, times = split_late(given, times, closes, state)
        # rows without a value have no rank
        empty = rows.column(self.of).is_null(nan_is_null=True).to_numpy(zero_copy_only=False)
        rows, times = rows.filter(pa.array(~empty)), times[~empty]
        if rows.num_rows:
            self._rank(rows, times, state)
        return self._closed(state)

    def _rank(self, rows: pa.RecordBatch, times: Numbers, state: State) -> None:
        starts = times // self.size_us * self.size_us
        key = columns_of(rows, self.by) | {START.name: pa.array(starts).cast(TIMESTAMP)}
        groups = group_rows(key.values(), rows.num_rows)
        windows = take(key, groups.first)
        new = self._best(rows.column(self.of), groups.of)
        owner, known = self._known(windows, groups.count, state)
        columns = {
            name: pa.concat_arrays([column, rows.column(name).take(pa.array(new))])
            for name, column in known.items()
        }
        owner = np.concatenate([owner, groups.of[new]])
        best = self._best(columns[self.of], owner)
        owner = owner[best]
        state.put(
            take(windows, owner) | {_RANK.name: pa.array(_places(owner))} | take(columns, best),
            pa.array(starts[groups.first][owner] + self.size_us),
        )

    def _known(self, windows: Columns, count: int, state: State) -> tuple[Numbers, Columns]:
        """Return the stored rows of windows by rank: the window of each row, and its columns."""
        owner, place = expand(np.full(count, self.k))
        stored = state.get(take(windows, owner) | {_RANK.name: pa.array(place + 1)})
        there = np.flatnonzero(stored.column(FOUND).to_numpy(zero_copy_only=False))
        names = [name for name in stored.schema.names if name != FOUND]
        return owner[there], take(columns_of(stored, names), there)

    def _best(self, values: pa.Array, owner: Numbers) -> Numbers:
        """Choose the k largest values of each owner, in the order of owners and values."""
        both = pa.record_batch({"owner": pa.array(owner), "value": values})
        order: Numbers = (
            pc.sort_indices(  # stable: of equal values the first stays first
                both, sort_keys=[("owner", "ascending"), ("value", "descending")]
            )
            .to_numpy()
            .astype(np.int64)
        )
        return order[_places(owner[order]) <= self.k]

    def _closed(self, state: State) -> dict[str, Any] | None:
        due = state.due()
        if not due.num_rows:
            return None
        key = columns_of(due, [*self.by, START.name])
        state.delete(key | columns_of(due, [_RANK.name]))
        groups = group_rows(key.values(), due.num_rows)
        order = np.lexsort((due.column(_RANK.name).to_numpy(), groups.of))
        rows = columns_of(due, [name for name in due.schema.names if name != TIMER])
        return take(rows | {END.name: due.column(TIMER).cast(TIMESTAMP)}, order)


def _places(owner: Numbers) -> Numbers:
    """Count from 1 for each owner; the rows of one owner lie together.

    >>> _places(np.array([4, 4, 7, 7, 7])).tolist()
    [1, 2, 1, 2, 3]
    """
    place = np.arange(len(owner))
    begins = np.ones(len(owner), np.bool_)
    begins[1:] = owner[1:] != owner[:-1]
    return place - np.maximum.accumulate(np.where(begins, place, 0)) + 1
