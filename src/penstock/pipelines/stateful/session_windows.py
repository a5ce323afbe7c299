"""Session windows: rows of a key form a session while they are less than a gap apart.

A session [start, last row + gap) closes when the watermark reaches its end, and is emitted once.
Emitted sessions never change: a row that would have been part of a closed session is late, and so
is one that would form a closed session alone. For that a closed session is kept for one more gap;
after that every row that could touch it is late anyway.
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
_LAST, _EMITTED = pa.field("_last", pa.int64()), pa.field("_told", pa.bool_())
#: The index of the first column of totals.
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
    touching=True rows that are exactly gap_s apart belong together, as in Flink and Spark.

    >>> from datetime import UTC, datetime
    >>> from penstock import sessions, try_batches
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
        """Return the columns of state and output."""
        schema, key = self._rows_and_key(inputs)
        totals = total_fields(schema, self.sums)
        return Shape(
            state_key=[numbered.NUMBER],
            state=[numbered.ROWS, START, _LAST, _EMITTED, *totals, STAMP],
            output=output_of([*key, START, END, *totals]),
        )

    def __call__(self, given: pa.RecordBatch, state: State) -> dict[str, Any] | None:
        """Add the rows of a slice to their sessions; return the sessions that close."""
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
        # the rows left are after the last row of a closed session, or they would be late
        ends = np.full(groups.count, NO_TIME)
        np.maximum.at(ends, _numbers(closed, _OWNER), self._ends(closed))
        late = times < ends[owner]
        state.late(rows.filter(pa.array(late)))
        new = _single(owner, times, total(rows, self.sums, each_alone(rows.num_rows)))
        going = self._merged(pa.concat_batches([going, new.filter(pa.array(~late))]))
        remembered = closed.filter(pa.array(self._ends(closed) + self.gap_us > watermark))
        self._write(state, keys, before, pa.concat_batches([going, _as_emitted(remembered)]))
        return self._shown(keys, closed.filter(pc.invert(closed.column(_EMITTED.name))))

    def _ends(self, sessions: pa.RecordBatch) -> Numbers:
        return _numbers(sessions, _LAST) + self.gap_us

    def _merged(self, sessions: pa.RecordBatch) -> pa.RecordBatch:
        """Merge sessions that are less than a gap apart."""
        owner, start, last = _intervals(sessions)
        groups = _merge_close(owner, start, last, self.gap_us)
        ends = np.full(groups.count, NO_TIME)
        np.maximum.at(ends, groups.of, last)
        totals = total_again(columns_of(sessions, sessions.schema.names[_TOTALS:]), groups)
        return _single(owner[groups.first], start[groups.first], totals, ends)

    def _write(
        self, state: State, keys: Columns, before: Numbers, sessions: pa.RecordBatch
    ) -> None:
        """Replace all sessions of these keys."""
        sessions = sessions.take(pa.array(np.argsort(_numbers(sessions, _OWNER), kind="stable")))
        owner = _numbers(sessions, _OWNER)
        now = np.bincount(owner, minlength=len(before))
        number = np.arange(len(owner)) - (np.cumsum(now) - now)[owner]
        emitted = sessions.column(_EMITTED.name).to_numpy(zero_copy_only=False)
        timers = np.full(len(before), np.iinfo(np.int64).max)
        np.minimum.at(timers, owner, self._ends(sessions) + np.where(emitted, self.gap_us, 0))
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


# Batches of sessions have the columns: owner (the number of a key), start, last, emitted, totals.


def _single(
    owner: Numbers, times: Numbers, totals: Columns, last: Numbers | None = None
) -> pa.RecordBatch:
    """Return new sessions; a single row starts and ends at its time."""
    columns = {
        _OWNER.name: pa.array(owner, _OWNER.type),
        START.name: pa.array(times).cast(TIMESTAMP),
        _LAST.name: pa.array(times if last is None else last),
        _EMITTED.name: pa.repeat(False, len(owner)),
    }
    return pa.record_batch(columns | totals)


def _stored(owner: Numbers, values: pa.RecordBatch) -> pa.RecordBatch:
    """Return stored sessions."""
    names = [name for name in values.schema.names if name not in (numbered.ROWS.name, FOUND)]
    return pa.record_batch({_OWNER.name: pa.array(owner)} | columns_of(values, names))


def _as_emitted(sessions: pa.RecordBatch) -> pa.RecordBatch:
    place = sessions.schema.get_field_index(_EMITTED.name)
    return sessions.set_column(place, _EMITTED, pa.repeat(True, sessions.num_rows))


def _intervals(sessions: pa.RecordBatch) -> tuple[Numbers, Numbers, Numbers]:
    return _numbers(sessions, _OWNER), _numbers(sessions, START), _numbers(sessions, _LAST)


def _numbers(sessions: pa.RecordBatch, field: pa.Field) -> Numbers:
    numbers: Numbers = sessions.column(field.name).cast(pa.int64()).to_numpy()
    return numbers


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
