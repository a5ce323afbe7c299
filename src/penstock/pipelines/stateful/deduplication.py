"""Deduplication: passes the first row of a key on and drops rows that repeat it soon after.

Two rows of a key that were passed on are at least `within` apart. So there is at most one in an
interval of that length, and a row is compared with the one of its own interval and of the two
neighbouring intervals. A row is deleted from the state when every row that could repeat it is late.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.pipelines.stateful.columns import Names, micros_of, names_of
from penstock.pipelines.stateful.groups import (
    Columns,
    Groups,
    Numbers,
    columns_of,
    group_rows,
    take,
)
from penstock.pipelines.stateful.ready_function import Ready, Shape
from penstock.pipelines.stateful.watermark import NO_TIME, split_late, times_of
from penstock.state.handle import State
from penstock.state.layout import FOUND
from penstock.topics.schema import EVENT, without_event

_STRETCH, _AT = pa.field("_stretch", pa.int64()), pa.field("_at", pa.int64())
#: Longer than the distance of any two times.
_EVER = 1 << 61


def distinct(by: Names, *, within_s: float | None = None, time: str = EVENT) -> "Distinct":
    """Drop rows that are within_s before or after a row of the same key that was passed on.

    Distances are in event time, and the first row to arrive is passed on. Without within_s a key
    is passed on once, or again after the operator's ttl_s.

    >>> from penstock import distinct, try_batches
    >>> batches = [[{"id": 1}, {"id": 2}, {"id": 1}], [{"id": 2}, {"id": 3}]]
    >>> try_batches(distinct(by="id"), batches, "id long", slices=1).rows
    [{'id': 1}, {'id': 2}, {'id': 3}]
    """
    within = None if within_s is None else micros_of("within_s", within_s)
    return Distinct(by=names_of("by", by), within_us=within, time=time)


@dataclass(frozen=True, slots=True, kw_only=True)
class Distinct(Ready):
    """See `distinct`."""

    within_us: int | None = None

    def shape(self, inputs: Mapping[str, pa.Schema]) -> Shape:
        """Return the columns of state and output."""
        schema, _ = self._rows_and_key(inputs)
        return Shape(state_key=[_STRETCH], state=[_AT], output=without_event(schema))

    @property
    def forgets(self) -> bool:
        """Only with within_s."""
        return self.within_us is not None

    def __call__(self, given: pa.RecordBatch, state: State) -> pa.RecordBatch | None:
        """Return the new rows of a slice."""
        due = state.due()
        if due.num_rows:
            state.delete(due.select([*self.by, _STRETCH.name]))
        times = times_of(given, self.time)
        if self.within_us is None:
            rows, times = given, np.where(times == NO_TIME, 0, times)
        else:
            rows, times = split_late(given, times, times + 1, state)
        within = self.within_us or _EVER
        key = columns_of(rows, self.by)
        groups = group_rows(key.values(), rows.num_rows)
        fresh = np.flatnonzero(~_repeats(state, key, groups, times, within))
        chosen = _first(groups.of, times, fresh, within)
        if not len(chosen):
            return None
        at = times[chosen]
        known = take(key, chosen) | {_STRETCH.name: pa.array(at // within), _AT.name: pa.array(at)}
        state.put(known, None if self.within_us is None else pa.array(at + within))
        return rows.take(pa.array(chosen))


def _repeats(
    state: State, key: Columns, groups: Groups, times: Numbers, within: int
) -> NDArray[np.bool_]:
    """Return which rows repeat a row of an earlier batch."""
    stretch = times // within
    pairs = group_rows([pa.array(groups.of), pa.array(stretch)], len(times))
    beside = stretch[pairs.first] + np.array([[-1], [0], [1]])
    keys = take(key, np.tile(pairs.first, 3)) | {_STRETCH.name: pa.array(beside.ravel())}
    known = state.get(keys)
    there = known.column(FOUND).to_numpy(zero_copy_only=False).reshape(beside.shape)
    at = known.column(_AT.name).fill_null(0).to_numpy().reshape(beside.shape)
    repeats: NDArray[np.bool_] = there[:, pairs.of] & (np.abs(times - at[:, pairs.of]) < within)
    return np.asarray(repeats.any(axis=0))


def _first(of: Numbers, times: Numbers, rows: Numbers, within: int) -> Numbers:
    """Choose rows in order, without those that repeat a chosen one; one row per key and round."""
    chosen = [rows[:0]]
    while len(rows):
        _, first, back = np.unique(of[rows], return_index=True, return_inverse=True)
        chosen.append(rows[first])
        rows = rows[np.abs(times[rows] - times[rows[first]][back]) >= within]
    return np.sort(np.concatenate(chosen))
