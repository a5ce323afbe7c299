"""Generates any part of the stream, of one kind or of all, also as the source of a topic.

>>> rows(BIDS, 10, 12, StreamSettings(), columns=("auction", "price")).to_pylist()
[{'auction': 1000, 'price': 123}, {'auction': 1000, 'price': 230712}]
>>> rows(BIDS, 0, 100, StreamSettings()).slice(40, 7) == rows(BIDS, 40, 47, StreamSettings())
True
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.nexmark.event_order import AUCTIONS, BIDS, FIRST_ID, PERSONS, ROUND, EventKind
from penstock.nexmark.events import BID_FIELDS, auctions, bid_fields, bids, persons
from penstock.nexmark.settings import StreamSettings, timestamps
from penstock.pipelines.topic_declaration import MakeRows

_MAKERS = {PERSONS: persons, AUCTIONS: auctions, BIDS: bids}
#: The names of the kinds' structs in a row of all kinds, in the order of `event_type`.
_STRUCTS = {"person": PERSONS, "auction": AUCTIONS, "bid": BIDS}


def rows(
    kind: EventKind,
    first: int,
    end: int,
    setting: StreamSettings,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Return rows first, ..., end - 1 of one kind, with all columns or with some."""
    ids = kind.ids(first, end)
    if columns is None:
        return _MAKERS[kind](ids, setting)
    if kind == BIDS and set(columns) <= set(BID_FIELDS):
        return bid_fields(ids, setting).select(columns)
    return _MAKERS[kind](ids, setting).select(columns)


def events(first: int, end: int, setting: StreamSettings) -> pa.Table:
    """Return events first, ..., end - 1 of all kinds, one row each, as the reference's source does.

    A row has `event_type` (0 person, 1 auction, 2 bid), a struct that holds it, two that are
    null, and its `dateTime`.
    """
    ids = np.arange(first, end, dtype=np.int64) + FIRST_ID
    kind_of = np.searchsorted([AUCTIONS.begin, BIDS.begin], ids % ROUND, side="right")
    columns = {"event_type": pa.array(kind_of.astype(np.int32))}
    for number, (name, kind) in enumerate(_STRUCTS.items()):
        own = rows(kind, *kind.rows_within(first, end), setting)
        structs = own.to_struct_array().combine_chunks()
        mine = kind_of == number
        place = pa.array(np.cumsum(mine) - 1, mask=~mine)
        columns[name] = structs.take(place)
    columns["dateTime"] = timestamps(setting.times_ms(ids))
    return pa.table(columns)


def row_maker(
    kind: EventKind, setting: StreamSettings, columns: Sequence[str] | None = None
) -> MakeRows:
    """Return the function that generates the rows of a topic, for `Pipeline.produces`.

    The id of a record is its row. The due time sets only `_event`; `dateTime` follows from the
    id, so that a repeated run has the same rows. If the topic follows a workload, the clock
    `WorkloadClock(load * (ROUND / kind.share))` keeps both times together.
    """

    def make(first: int, due: pa.Array) -> pa.Table:
        return rows(kind, first, first + len(due), setting, columns)

    make.__name__ = kind.name
    return make
