"""Session windows: rows of a key belong together while they come less than a gap apart.

A session [start, last row + gap) is closed when the watermark reaches its end, and told then,
once. What was told stays true: a row that would have been part of a closed session is late, and
so is one that would be a closed session by itself. For that a closed session is remembered for
one gap more; after that every row that could touch it is late anyhow.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.pipelines.stateful import row_lists as numbered
from penstock.pipelines.stateful.columns import (
    Names,
    micros_of,
    names_of,
    output_of,
)
from penstock.pipelines.stateful.groups import (
    Columns,
    Groups,
    Numbers,
    columns_of,
    each_alone,
    group_rows,
    pc,
    take,
)
from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.pipelines.stateful.time_windows import END, START
from penstock.pipelines.stateful.totals import STAMP, total, total_again, total_fields
from penstock.pipelines.stateful.watermark import NO_TIME, split_late, times_of
from penstock.state.handle import State
from penstock.state.layout import FOUND
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT

_OWNER = pa.field("_owner", pa.int64())
_LAST, _TOLD = pa.field("_last", pa.int64()), pa.field("_told", pa.bool_())
#: Where totals begin.
_TOTALS = 4


def sessions(
    by: Names = (),
    *,
    gap_s: float,
    sums: Names = (),
    time: str = EVENT,
    touching: bool = False,
) -> "Sessions":
    """Count rows and add up columns by key and session; gap_s without a row ends a session.

    The output has the key, start, end (of the gap), n, and sum_X for each column X. With
    touching=True rows that are exactly gap_s apart belong together, as Flink and Spark have it.

    >>> from datetime import UTC, datetime
    >>> from penstock.pipelines.stateful.try_out import try_batches
    >>> batches = [[{"_event": datetime(2024, 1, 1, 0, 0, s, tzinfo=UTC)} for s in (1, 4, 19)], []]
    >>> [row] = try_batches(sessions(gap_s=5), batches, "user string").rows
    >>> row["start"].second, row["end"].second, row["n"]
    (1, 9, 2)
    """
    return Sessions(
        by=names_of("by", by, least=0),
        sums=names_of("sums", sums, least=0),
        # times are whole microseconds: at most a gap apart is less than one more apart
        gap_us=micros_of("gap_s", gap_s) + touching,
        time=time,
        touching=touching,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sessions(Ready):
    """See `sessions`."""

    sums: tuple[str, ...] = ()
    gap_us: int
    touching: bool = False

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Say what it keeps and gives."""
        schema, key = self._rows_and_key(inputs)
        totals = total_fields(schema, self.sums)
        return Shape(
            state_key=[numbered.NUMBER],
            state=[numbered.ROWS, START, _LAST, _TOLD, *totals, STAMP],
            output=output_of([*key, START, END, *totals]),
        )

    def __call__(self, given: pa.RecordBatch, state: State) -> dict[str, Any] | None:
        """Add the rows of a slice to their sessions, and tell of those that are closed."""
        due = state.due()
        times = times_of(given, self.time)
        rows, times = split_late(given, times, times + self.gap_us, state)
        key = {name: pa.concat_arrays([due.column(name), rows.column(name)]) for name in self.by}
        groups = group_rows(key.values(), due.num_rows + rows.num_rows)
        if not groups.count:
            return None
        keys, owner = take(key, groups.first), groups.of[due.num_rows :]
        before = numbered.lengths(state, keys, groups.count)
        known = _stored(*numbered.read(state, keys, before))

        watermark = NO_TIME if state.watermark is None else state.watermark
        is_closed = self._ends(known) <= watermark
        closed, going = known.filter(pa.array(is_closed)), known.filter(pa.array(~is_closed))
        # what is left comes behind the last row of what is closed, or it would be closed itself
        ends = np.full(groups.count, NO_TIME)
        np.maximum.at(ends, _numbers(closed, _OWNER), self._ends(closed))
        late = times < ends[owner]
        state.late(rows.filter(pa.array(late)))
        new = _single(owner, times, total(rows, self.sums, each_alone(rows.num_rows)))
        going = self._merged(pa.concat_batches([going, new.filter(pa.array(~late))]))
        remembered = closed.filter(pa.array(self._ends(closed) + self.gap_us > watermark))
        self._write(state, keys, before, pa.concat_batches([going, _as_told(remembered)]))
        return self._shown(keys, closed.filter(pc.invert(closed.column(_TOLD.name))))

    def _ends(self, sessions: pa.RecordBatch) -> Numbers:
        return _numbers(sessions, _LAST) + self.gap_us

    def _merged(self, sessions: pa.RecordBatch) -> pa.RecordBatch:
        """Make one of those that are less than a gap apart."""
        owner, start, last = _intervals(sessions)
        groups = _merge_close(owner, start, last, self.gap_us)
        ends = np.full(groups.count, NO_TIME)
        np.maximum.at(ends, groups.of, last)
        totals = total_again(columns_of(sessions, sessions.schema.names[_TOTALS:]), groups)
        return _single(owner[groups.first], start[groups.first], totals, ends)

    def _write(
        self, state: State, keys: Columns, before: Numbers, sessions: pa.RecordBatch
    ) -> None:
        """Put all sessions of these keys in place of those that they had."""
        sessions = sessions.take(pa.array(np.argsort(_numbers(sessions, _OWNER), kind="stable")))
        owner = _numbers(sessions, _OWNER)
        now = np.bincount(owner, minlength=len(before))
        number = np.arange(len(owner)) - (np.cumsum(now) - now)[owner]
        told = sessions.column(_TOLD.name).to_numpy(zero_copy_only=False)
        timers = np.full(len(before), np.iinfo(np.int64).max)
        np.minimum.at(timers, owner, self._ends(sessions) + np.where(told, self.gap_us, 0))
        values = columns_of(sessions, sessions.schema.names[1:])
        numbered.cut(state, keys, before, now)
        some = np.flatnonzero(now)
        rows = (np.searchsorted(some, owner), number, values)
        numbered.write(state, take(keys, some), (now[some], timers[some]), rows)

    def _shown(self, keys: Columns, sessions: pa.RecordBatch) -> dict[str, Any] | None:
        if not sessions.num_rows:
            return None
        shown = take(keys, _numbers(sessions, _OWNER))
        ends = {END.name: pa.array(self._ends(sessions) - self.touching).cast(TIMESTAMP)}
        totals = columns_of(sessions, sessions.schema.names[_TOTALS:])
        return shown | columns_of(sessions, [START.name]) | ends | totals


# Sessions at work are batches: owner (the number of a key), start, last, told, totals.


def _single(
    owner: Numbers, times: Numbers, totals: Columns, last: Numbers | None = None
) -> pa.RecordBatch:
    """Sessions that nobody was told of; a row by itself begins and ends with its time."""
    columns = {
        _OWNER.name: pa.array(owner, _OWNER.type),
        START.name: pa.array(times).cast(TIMESTAMP),
        _LAST.name: pa.array(times if last is None else last),
        _TOLD.name: pa.repeat(False, len(owner)),
    }
    return pa.record_batch(columns | totals)


def _stored(owner: Numbers, values: pa.RecordBatch) -> pa.RecordBatch:
    """Sessions as they were put."""
    names = [name for name in values.schema.names if name not in (numbered.ROWS.name, FOUND)]
    return pa.record_batch({_OWNER.name: pa.array(owner)} | columns_of(values, names))


def _as_told(sessions: pa.RecordBatch) -> pa.RecordBatch:
    place = sessions.schema.get_field_index(_TOLD.name)
    return sessions.set_column(place, _TOLD, pa.repeat(True, sessions.num_rows))


def _intervals(sessions: pa.RecordBatch) -> tuple[Numbers, Numbers, Numbers]:
    return _numbers(sessions, _OWNER), _numbers(sessions, START), _numbers(sessions, _LAST)


def _numbers(sessions: pa.RecordBatch, field: pa.Field) -> Numbers:
    found: Numbers = sessions.column(field.name).cast(pa.int64()).to_numpy()
    return found


def _merge_close(key: Numbers, start: Numbers, last: Numbers, gap: int) -> Groups:
    """Group the intervals [start, last] of each key that are less than a gap apart.

    >>> _merge_close(np.zeros(3, int), np.array([20, 0, 9]), np.array([20, 0, 11]), gap=10).of
    array([0, 0, 0])
    >>> _merge_close(np.zeros(3, int), np.array([20, 0, 9]), np.array([20, 0, 10]), gap=10).of
    array([1, 0, 0])
    """
    order = np.lexsort((start, key))
    key, start, last = key[order], start[order], last[order]
    # the latest end so far, by rank, so that one key cannot reach into the next
    by_last = np.lexsort((last, key))
    rank = np.empty_like(by_last)
    rank[by_last] = np.arange(len(rank))
    reach = last[by_last[np.maximum.accumulate(rank)]]
    begins = np.ones(len(order), np.bool_)
    begins[1:] = (key[1:] != key[:-1]) | (start[1:] - reach[:-1] >= gap)
    of = np.empty(len(order), np.int64)
    of[order] = np.cumsum(begins) - 1
    return Groups(of, order[begins])
