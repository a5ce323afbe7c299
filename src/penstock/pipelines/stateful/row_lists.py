"""Lists of rows under one key: rows are numbered from 0, and a head row stores their number.

The head has the number -1 and no other values, and carries the timer of the key.
"""

import numpy as np
import pyarrow as pa

from penstock.pipelines.stateful.groups import Columns, Numbers, expand, take
from penstock.state.handle import State
from penstock.state.layout import NEVER

#: The number of a row, a column of the state's key.
NUMBER = pa.field("_number", pa.int64())
#: How many rows there are, a column of the state's values.
ROWS = pa.field("_rows", pa.int64())
_HEAD = -1


def lengths(state: State, keys: Columns, count: int) -> Numbers:
    """Return the number of rows of each key."""
    heads = state.get(keys | {NUMBER.name: _numbers(np.full(count, _HEAD))})
    numbers: Numbers = heads.column(ROWS.name).fill_null(0).to_numpy()
    return numbers


def read(state: State, keys: Columns, rows: Numbers) -> tuple[Numbers, pa.RecordBatch]:
    """Return the first rows of each key: the owner of each row, and its values."""
    owner, number = expand(rows)
    return owner, state.get(take(keys, owner) | {NUMBER.name: _numbers(number)})


def write(
    state: State,
    keys: Columns,
    heads: tuple[Numbers, Numbers],
    rows: tuple[Numbers, Numbers, Columns],
) -> None:
    """Put rows, and the head of every key.

    `heads` has the number of rows and the timer of each key; `rows` has the owner, the number and
    the values of each row.
    """
    (count, timers), (owner, number, values) = heads, rows
    every = np.arange(len(count))
    places = take(keys, np.concatenate([owner, every]))
    numbers = np.concatenate([number, np.full(len(every), _HEAD)])
    columns = {
        name: pa.concat_arrays([column, pa.nulls(len(every), column.type)])
        for name, column in values.items()
    }
    counts = pa.concat_arrays([pa.nulls(len(owner), ROWS.type), _numbers(count)])
    state.put(
        places | {NUMBER.name: _numbers(numbers), ROWS.name: counts} | columns,
        pa.array(np.concatenate([np.full(len(owner), NEVER), timers])),
    )


def cut(state: State, keys: Columns, before: Numbers, now: Numbers) -> None:
    """Delete the surplus rows of keys, and the heads of keys without rows."""
    owner, more = expand(np.maximum(before - now, 0))
    gone = np.flatnonzero((now == 0) & (before > 0))
    if len(owner):
        number = np.concatenate([now[owner] + more, np.full(len(gone), _HEAD)])
        state.delete(take(keys, np.concatenate([owner, gone])) | {NUMBER.name: _numbers(number)})


def _numbers(numbers: Numbers) -> pa.Array:
    return pa.array(numbers, pa.int64())
