"""Finds the pairs of a join: rows of two sides with the same key and close times.

Rows wait in the state under a *place*: key, side, and a time interval as long as the bounds are
wide. So the partners of a row wait in two places of the other side. A place is deleted when every
row that could still find a partner there is late.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from penstock.pipelines.stateful import row_lists as numbered
from penstock.pipelines.stateful.groups import (
    Columns,
    Numbers,
    columns_of,
    expand,
    group_rows,
    take,
)
from penstock.state.handle import State

RIGHT = pa.field("_right", pa.bool_())
STRETCH = pa.field("_stretch", pa.int64())
#: The time of a row that waits.
AT = pa.field("_at", pa.int64())


@dataclass(frozen=True, slots=True)
class PairRows:
    """Rows of both sides; the columns that only the other side has are null."""

    key: Columns
    is_right: NDArray[np.bool_]
    times: Numbers
    values: Columns


@dataclass(frozen=True, slots=True)
class Pairs:
    """Pairs of rows: keys, values of new and waiting rows, and the indices of each pair."""

    key: Columns
    values: Columns
    left: Numbers
    right: Numbers


def pair(state: State, rows: PairRows, low: int, high: int) -> Pairs:
    """Return pairs whose right row is `low` to `high` after the left one; store the new rows."""
    count, width = len(rows.times), max(high - low, 1)
    # the time range of the partners of a row
    since = rows.times + np.where(rows.is_right, -high, low)
    until = rows.times + np.where(rows.is_right, -low, high)

    # a row has its own place, and two on the other side
    side = np.concatenate([rows.is_right, ~rows.is_right, ~rows.is_right])
    stretch = np.concatenate([rows.times // width, since // width, since // width + 1])
    all_places = take(rows.key, np.tile(np.arange(count), 3)) | {
        RIGHT.name: pa.array(side),
        STRETCH.name: pa.array(stretch),
    }
    groups = group_rows(all_places.values(), 3 * count)
    places = take(all_places, groups.first)
    own, partner_groups = groups.of[:count], groups.of[count:]
    before = numbered.lengths(state, places, groups.count)
    is_partner = np.zeros(groups.count, np.bool_)
    is_partner[partner_groups] = True
    old = np.where(is_partner, before, 0)
    _, stored = numbered.read(state, places, old)

    # a left row also finds right rows that are as new as itself; so such pairs come once
    new, order = np.bincount(own, minlength=groups.count), np.argsort(own, kind="stable")
    asking, nth = expand(old[partner_groups])
    waited = count + _begins(old)[partner_groups[asking]] + nth
    other, nth = expand(np.where(np.tile(rows.is_right, 2), 0, new[partner_groups]))
    arrived = order[_begins(new)[partner_groups[other]] + nth]
    row, partner = np.concatenate([asking, other]) % count, np.concatenate([waited, arrived])
    at = np.concatenate([rows.times, stored.column(AT.name).to_numpy()])[partner]
    close = (since[row] <= at) & (at <= until[row])
    row, partner = row[close], partner[close]

    mine = np.flatnonzero(new)
    after = np.where(side[groups.first[mine]], -low, high)
    timers = (stretch[groups.first[mine]] + 1) * width + after
    number = np.empty(count, np.int64)
    number[order] = before[own[order]] + expand(new)[1]
    numbered.write(
        state,
        take(places, mine),
        ((before + new)[mine], timers),
        (np.searchsorted(mine, own), number, rows.values | {AT.name: pa.array(rows.times)}),
    )
    is_right = rows.is_right[row]
    return Pairs(
        key=take(rows.key, row),
        values={
            name: pa.concat_arrays([column, stored.column(name)])
            for name, column in rows.values.items()
        },
        left=np.where(is_right, partner, row),
        right=np.where(is_right, row, partner),
    )


def forget(state: State, by: Sequence[str], due: pa.RecordBatch) -> None:
    """Delete due places with all their rows."""
    before = due.column(numbered.ROWS.name).to_numpy()
    places = columns_of(due, (*by, RIGHT.name, STRETCH.name))
    numbered.cut(state, places, before, np.zeros(len(before), np.int64))


def _begins(counts: Numbers) -> Numbers:
    """Return the start of each group if groups are contiguous."""
    begins: Numbers = np.cumsum(counts) - counts
    return begins
