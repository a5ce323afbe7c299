"""Several rows under one key: they are numbered from 0 on, and one more row says how many.

The row that says so has the number -1, holds nothing else, and carries the timer of the key.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from penstock.pipelines.stateful.groups import Columns, Numbers, expand, take
from penstock.state.handle import State

#: The number of a row, a column of the state's key.
NUMBER = pa.field("_number", pa.int64())
#: How many rows there are, a column of the state's values.
ROWS = pa.field("_rows", pa.int64())
_HEAD = -1


def lengths(state: State, keys: Columns, count: int) -> Numbers:
    """Return how many rows each of so many keys has."""
    heads = keys | {NUMBER.name: _numbers(np.full(count, _HEAD))}
    found: Numbers = state.get(heads).column(ROWS.name).fill_null(0).to_numpy()
    return found


def read(state: State, keys: Columns, rows: Numbers) -> tuple[Numbers, pa.RecordBatch]:
    """Return all rows of keys that have so many: whose each is, and its values."""
    owner, number = expand(rows)
    return owner, state.get(take(keys, owner) | {NUMBER.name: _numbers(number)})


def write(state: State, keys: Columns, number: Numbers, values: Mapping[str, pa.Array]) -> None:
    """Put rows under their keys, which may be there several times, and numbers."""
    if len(number):
        nothing = {ROWS.name: pa.nulls(len(number), ROWS.type)}
        state.put(keys | {NUMBER.name: _numbers(number)} | nothing | dict(values))


def resize(
    state: State,
    keys: Columns,
    rows: tuple[Numbers, Numbers],
    values: Sequence[pa.Field],
    timers: Numbers,
) -> None:
    """Say how many rows each key had and has now; those beyond are deleted, and keys without."""
    before, now = rows
    owner, more = expand(np.maximum(before - now, 0))
    if len(owner):
        state.delete(take(keys, owner) | {NUMBER.name: _numbers(now[owner] + more)})
    kept, gone = np.flatnonzero(now > 0), np.flatnonzero((now == 0) & (before > 0))
    if len(kept):
        heads = take(keys, kept) | {NUMBER.name: _numbers(np.full(len(kept), _HEAD))}
        nothing = {field.name: pa.nulls(len(kept), field.type) for field in values}
        state.put(heads | {ROWS.name: pa.array(now[kept])} | nothing, pa.array(timers[kept]))
    if len(gone):
        state.delete(take(keys, gone) | {NUMBER.name: _numbers(np.full(len(gone), _HEAD))})


def _numbers(numbers: Numbers) -> pa.Array:
    return pa.array(numbers, NUMBER.type)
