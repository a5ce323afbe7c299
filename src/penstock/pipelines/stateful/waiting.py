"""Rows of one side of a join that wait for partners, by key and stretch of time."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pipelines.stateful import numbered
from penstock.pipelines.stateful.groups import Columns, Numbers, expand, group_rows, take
from penstock.state.handle import State

RIGHT = pa.field("_right", pa.bool_())
STRETCH = pa.field("_stretch", pa.int64())
#: The time of a row that waits.
AT = pa.field("_at", pa.int64())


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """One side. Keys are columns, the same for rows that wait and for those that look for them."""

    state: State
    is_right: bool
    #: How long a stretch of time is, in microseconds.
    width: int
    #: What waits: the columns of both sides, of which those of the other one are null.
    fields: Sequence[pa.Field]

    def add(self, key: Columns, times: Numbers, values: Columns, after: int) -> None:
        """Let rows wait until the watermark is so far behind the end of their stretch."""
        if not len(times):
            return
        stretch = times // self.width
        groups = group_rows([*key.values(), pa.array(stretch)], len(times))
        stretches = stretch[groups.first]
        places = self._places(take(key, groups.first), stretches)
        before = numbered.lengths(self.state, places, groups.count)
        more = np.bincount(groups.of, minlength=groups.count)
        # rows are numbered in their order behind those that are there
        order = np.argsort(groups.of, kind="stable")
        _, nth = expand(more)
        number = np.empty(len(order), np.int64)
        number[order] = before[groups.of[order]] + nth
        empty = {
            field.name: pa.nulls(len(times), field.type)
            for field in self.fields
            if field.name not in values
        }
        rows = values | empty | {AT.name: pa.array(times)}
        numbered.write(self.state, take(places, groups.of), number, rows)
        timers = (stretches + 1) * self.width + after
        numbered.resize(self.state, places, (before, before + more), [AT, *self.fields], timers)

    def partners(
        self, key: Columns, times: Numbers, low: int, high: int
    ) -> tuple[Numbers, pa.RecordBatch]:
        """Find what waits from `low` to `high` after each row: which row, and what it found.

        A stretch is at least as long as it is from low to high, so that two are enough.
        """
        stretch = (times + low) // self.width
        groups = group_rows([*key.values(), pa.array(stretch)], len(times))
        first = stretch[groups.first]
        keys = take(key, np.tile(groups.first, 2))
        places = self._places(keys, np.concatenate([first, first + 1]))
        count = numbered.lengths(self.state, places, 2 * groups.count)
        _, stored = numbered.read(self.state, places, count)
        asked = np.concatenate([groups.of, groups.of + groups.count])
        turn, nth = expand(count[asked])
        row, candidate = turn % len(times), (np.cumsum(count) - count)[asked[turn]] + nth
        apart = stored.column(AT.name).to_numpy()[candidate] - times[row]
        close = (low <= apart) & (apart <= high)
        return row[close], stored.take(pa.array(candidate[close]))

    def _places(self, keys: Columns, stretches: Numbers) -> Columns:
        side = pa.repeat(self.is_right, len(stretches))
        return keys | {RIGHT.name: side, STRETCH.name: pa.array(stretches)}


def forget(
    state: State, by: Sequence[str], due: pa.RecordBatch, fields: Sequence[pa.Field]
) -> None:
    """Forget stretches that are due, with all that waits in them."""
    places = {name: due.column(name) for name in (*by, RIGHT.name, STRETCH.name)}
    rows = due.column(numbered.ROWS.name).to_numpy()
    nothing = np.zeros(len(rows), np.int64)
    numbered.resize(state, places, (rows, nothing), [AT, *fields], nothing)
