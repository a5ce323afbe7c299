"""Stream joins: pairs of rows with the same key and close times, each pair once.

A row is late if its time is before the watermark: its partners may have been deleted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.pipelines.stateful import row_lists as numbered
from penstock.pipelines.stateful.columns import Names, column_of, names_of, output_of, time_of
from penstock.pipelines.stateful.groups import Columns, Numbers, take
from penstock.pipelines.stateful.pairs import AT, RIGHT, STRETCH, PairRows, forget, pair
from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.pipelines.stateful.totals import STAMP, later_stamps
from penstock.pipelines.stateful.watermark import split_late, times_of
from penstock.state.handle import State
from penstock.topics.schema import EVENT, with_event


def join(
    left: str,
    right: str,
    *,
    on: Names | Mapping[str, str],
    within_s: float | tuple[float, float],
    time: str = EVENT,
) -> "Join":
    """Pair rows of two inputs that have the same key and whose times are close.

    within_s=(-5, 60) says that the right row comes at most 5 s before and 60 s after the left
    one; 5 is short for (-5, 5). on={"id": "order"} says that the key has another name on the
    right. The output has the key and the other columns of both; a name that both have gets the
    name of its input in front. A key that is null has no partner.

    >>> from datetime import UTC, datetime
    >>> from penstock import join, try_batches
    >>> when = [datetime(2024, 1, 1, 0, 0, s, tzinfo=UTC) for s in (1, 4)]
    >>> shipped = join("orders", "parcels", on="id", within_s=(0, 5))
    >>> batch = {
    ...     "orders": [{"id": 1, "cost": 7, "_event": when[0]}],
    ...     "parcels": [{"id": 1, "town": "Ulm", "_event": when[1]}],
    ... }
    >>> reads = {"orders": "id long, cost int", "parcels": "id long, town string"}
    >>> tried = try_batches(shipped, [batch], reads)
    >>> [(row["id"], row["cost"], row["town"], row["_event"].second) for row in tried.rows]
    [(1, 7, 'Ulm', 4)]
    """
    both = dict(on) if isinstance(on, Mapping) else {name: name for name in names_of("on", on)}
    if left == right:
        raise InputError("right", f"must be another input than left, got {right!r}")
    low, high = _bounds(within_s)
    return Join(
        by=names_of("on", tuple(both)),
        right_by=names_of("on", tuple(both.values())),
        left=left,
        right=right,
        low_us=low,
        high_us=high,
        time=time,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Join(Ready):
    """See `join`."""

    right_by: tuple[str, ...]
    left: str
    right: str
    low_us: int
    high_us: int

    def keys(self, inputs: Sequence[str]) -> dict[str, tuple[str, ...]]:
        """Return the key columns of each input."""
        for side in (self.left, self.right):
            if side not in inputs:
                raise InputError("reads", f"must have {side!r}", nearest(side, inputs))
        if len(inputs) > 2:
            raise InputError("reads", f"must be two inputs for a join, got {len(inputs)}")
        return {self.left: self.by, self.right: self.right_by}

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Return the columns of state and output."""
        keys = self.keys(tuple(inputs))
        schemas = {topic: with_event(inputs[topic]) for topic in keys}
        for topic, names in keys.items():
            time_of(schemas[topic], self.time)
            for name in names:
                column_of(schemas[topic], name, "on")
        key = [schemas[self.left].field(name) for name in self.by]
        columns = self._columns(schemas)
        return Shape(
            state_key=[RIGHT, STRETCH, numbered.NUMBER],
            state=[numbered.ROWS, AT, *columns, STAMP],
            output=output_of([*key, *columns]),
        )

    def __call__(self, given: Mapping[str, pa.RecordBatch], state: State) -> Columns | None:
        """Pair the rows of a slice with the waiting rows, and store them."""
        if (due := state.due()).num_rows:
            forget(state, self.by, due)
        rows = self._arrived(given, state)
        if not len(rows.times):
            return None
        pairs = pair(state, rows, self.low_us, self.high_us)
        if not len(pairs.left):
            return None
        names = self._names({topic: rows.schema for topic, rows in given.items()})
        left = {name: pairs.values[name] for name in (*names[self.left].values(), EVENT)}
        right = {name: pairs.values[name] for name in (*names[self.right].values(), EVENT)}
        left, right = take(left, pairs.left), take(right, pairs.right)
        stamps = later_stamps(left[EVENT], right[EVENT])
        return pairs.key | left | right | {EVENT: stamps}

    def _arrived(self, given: Mapping[str, pa.RecordBatch], state: State) -> PairRows:
        """Return the rows of both sides that are not late and have a key."""
        left, left_times = self._in_time(given[self.left], self.by, state)
        right, right_times = self._in_time(given[self.right], self.right_by, state)
        names = self._names({topic: rows.schema for topic, rows in given.items()})
        values = {EVENT: pa.concat_arrays([left.column(EVENT), right.column(EVENT)])}
        for name, new in names[self.left].items():
            column = left.column(name)
            values[new] = pa.concat_arrays([column, pa.nulls(len(right_times), column.type)])
        for name, new in names[self.right].items():
            column = right.column(name)
            values[new] = pa.concat_arrays([pa.nulls(len(left_times), column.type), column])
        return PairRows(
            key={
                name: pa.concat_arrays([left.column(name), right.column(other)])
                for name, other in zip(self.by, self.right_by, strict=True)
            },
            is_right=np.arange(len(left_times) + len(right_times)) >= len(left_times),
            times=np.concatenate([left_times, right_times]),
            values=values,
        )

    def _in_time(
        self, rows: pa.RecordBatch, key: Sequence[str], state: State
    ) -> tuple[pa.RecordBatch, Numbers]:
        times = times_of(rows, self.time)
        rows, times = split_late(rows, times, times + 1, state)
        null = np.zeros(rows.num_rows, np.bool_)
        for name in key:
            null |= rows.column(name).is_null().to_numpy(zero_copy_only=False)
        return (rows.filter(pa.array(~null)), times[~null]) if null.any() else (rows, times)

    def _columns(self, schemas: Mapping[str, pa.Schema]) -> list[pa.Field]:
        """Return the columns of both inputs without their keys, with their output names."""
        names = self._names(schemas)
        return [
            pa.field(new, schemas[topic].field(name).type)
            for topic in (self.left, self.right)
            for name, new in names[topic].items()
        ]

    def _names(self, schemas: Mapping[str, pa.Schema]) -> dict[str, dict[str, str]]:
        """Return by input the output name of each column except key and `_event`."""
        sides = {self.left: self.by, self.right: self.right_by}
        own = {
            topic: [name for name in schemas[topic].names if name not in (*key, EVENT)]
            for topic, key in sides.items()
        }
        all_names = [*self.by, *own[self.left], *own[self.right]]
        return {
            topic: {
                name: f"{topic}_{name}" if all_names.count(name) > 1 else name for name in names
            }
            for topic, names in own.items()
        }


def _bounds(within_s: Any) -> tuple[int, int]:
    """Return the bounds of a right time minus the left time, in microseconds."""
    given = (-within_s, within_s) if _is_seconds(within_s) else within_s
    two = isinstance(given, Sequence) and len(given) == 2 and all(map(_is_seconds, given))
    if not two or given[0] > given[1]:
        problem = f"must be the earliest and the latest time in seconds, got {within_s!r}"
        raise InputError("within_s", problem, "such as (-5, 60), or 5 for (-5, 5)")
    low, high = (round(seconds * 1_000_000) for seconds in given)
    return low, high


def _is_seconds(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
