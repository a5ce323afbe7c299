"""The largest counts of each window, all of them if several are equal.

A window is closed when the watermark reaches its end. That is the watermark of what is complete,
see `announcing`, so none of its counts is ever late.
"""

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.pipelines.stateful import row_lists as numbered
from penstock.pipelines.stateful.groups import columns_of, expand, group_rows, take
from penstock.pipelines.stateful.watermark import split_late, times_of
from penstock.state.handle import State
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT

_VALUES = ("auction", "n", EVENT)
#: Of each window those are kept that are the largest so far, and how many these are.
STATE, STATE_KEY = "_rows long, auction long, n long, _event timestamp", "_number long"


def largest(counts: pa.RecordBatch, state: State) -> dict[str, Any]:
    """Add counts of auctions to their windows, and tell of those windows that are closed."""
    ends = times_of(counts, "end")
    rows, ends = split_late(counts, ends, ends, state)
    _add(rows, ends, state)
    due = state.due()
    windows = columns_of(due, ["start"])
    count = due.column(numbered.ROWS.name).to_numpy()
    owner, kept = numbered.read(state, windows, count)
    numbered.cut(state, windows, count, np.zeros_like(count))
    closed = windows | {"end": due.column("_timer").cast(TIMESTAMP)}
    return take(closed, owner) | columns_of(kept, _VALUES)


def _add(rows: pa.RecordBatch, ends: Any, state: State) -> None:
    groups = group_rows([rows.column("start")], rows.num_rows)
    windows = take(columns_of(rows, ["start"]), groups.first)
    before = numbered.lengths(state, windows, groups.count)
    owner, known = numbered.read(state, windows, before)
    owner = np.concatenate([owner, groups.of])
    values = {name: pa.concat_arrays([known.column(name), rows.column(name)]) for name in _VALUES}
    n = values["n"].to_numpy()
    most = np.zeros(groups.count, np.int64)
    np.maximum.at(most, owner, n)
    best = np.flatnonzero(n == most[owner])
    best = best[np.argsort(owner[best], kind="stable")]
    now = np.bincount(owner[best], minlength=groups.count)
    numbered.cut(state, windows, before, now)
    numbered.write(state, windows, (now, ends[groups.first]), (*expand(now), take(values, best)))
