"""The stream: the same whoever makes which part of it."""

from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.nexmark import one_event
from tests.nexmark.plain import digest, plain_rows
from tests.workloads.strategies import few

from penstock.nexmark.event_order import AUCTIONS, BIDS, FIRST_ID, KINDS, PERSONS, EventKind
from penstock.nexmark.events import BID_FIELDS
from penstock.nexmark.settings import BASE_MS, StreamSettings
from penstock.nexmark.stream import events, row_maker, rows
from penstock.nexmark.times import FixedRate, WorkloadClock
from penstock.nexmark.vocabulary import builtin_tables
from penstock.pipelines.function_call import fit_producer
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.schema import parse_schema
from penstock.workloads.registry import make_workload

kinds = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
SETTINGS = {
    "reference": StreamSettings(),
    "thesis": StreamSettings(hot=False),
    "slow": StreamSettings(clock=FixedRate(200)),
    "wave": StreamSettings(clock=WorkloadClock(make_workload("cosine", 2) * 1e-3)),
}
settings = pytest.mark.parametrize("setting", SETTINGS.values(), ids=SETTINGS)


@cache
def plain_tables() -> tuple[str, list[str]]:
    tables = builtin_tables()
    return bytes(tables.pool).decode(), tables.urls.to_pylist()


def by_hand(event_id: int, setting: StreamSettings) -> one_event.Row:
    def at(number: int) -> int:
        return BASE_MS + int(setting.clock.after_us(np.array([number]))[0]) // 1000

    return one_event.event(event_id, setting.hot, at, *plain_tables())


@settings
@few
@given(first=st.one_of(st.integers(0, 60_000), st.integers(0, 10**12)))
def test_rows_are_what_each_event_is_by_itself(setting: StreamSettings, first: int) -> None:
    for kind in KINDS.values():
        expected = [by_hand(int(e), setting) for e in kind.ids(first, first + 3)]
        assert plain_rows(rows(kind, first, first + 3, setting)) == expected


def test_many_events_one_by_one() -> None:
    """Enough of them that some numbers are drawn again."""
    made = iter(plain_rows(rows(BIDS, 0, 5000, StreamSettings())))
    assert all(next(made) == by_hand(int(e), StreamSettings()) for e in BIDS.ids(0, 5000))


@kinds
@settings
@few
@given(begin=st.integers(0, 400), size=st.integers(0, 100), shift=st.sampled_from([0, 10**9]))
def test_a_part_is_the_same_alone_and_within_more(
    kind: EventKind, setting: StreamSettings, begin: int, size: int, shift: int
) -> None:
    whole, part = (
        _whole(kind, setting, shift),
        rows(kind, shift + begin, shift + begin + size, setting),
    )
    assert part == whole.slice(begin, size)


@cache
def _whole(kind: EventKind, setting: StreamSettings, shift: int) -> pa.Table:
    return rows(kind, shift, shift + 500, setting)


@few
@given(st.integers(0, 10**6), st.integers(0, 130))
def test_events_of_all_kinds_are_those_of_each_kind_in_order(first: int, size: int) -> None:
    table = events(first, first + size, StreamSettings())
    table.validate(full=True)
    for number, (name, kind) in enumerate(
        [("person", PERSONS), ("auction", AUCTIONS), ("bid", BIDS)]
    ):
        mine = table.filter(pc.field("event_type") == number)
        own = rows(kind, *kind.rows_within(first, first + size), StreamSettings())
        assert mine[name].to_pylist() == own.to_pylist()
        assert mine["dateTime"].to_pylist() == own["dateTime"].to_pylist()
        assert table[name].null_count == size - len(own)
    assert [FIRST_ID + first + n for n in range(size)] == sorted(
        int(e) for kind in KINDS.values() for e in kind.ids(*kind.rows_within(first, first + size))
    )


@kinds
@pytest.mark.parametrize("count", [0, 1, 60])
def test_columns_are_as_declared(kind: EventKind, count: int) -> None:
    table = rows(kind, 5, 5 + count, StreamSettings())
    assert table.schema.equals(parse_schema(kind.schema)) and len(table) == count
    table.validate(full=True)


@kinds
def test_some_columns(kind: EventKind) -> None:
    whole = rows(kind, 3, 40, StreamSettings())
    for columns in (
        ["dateTime", "extra"],
        [name for name in BID_FIELDS if name in whole.column_names],
    ):
        assert rows(kind, 3, 40, StreamSettings(), columns) == whole.select(columns)


@kinds
def test_a_topic_gets_the_rows_by_their_number_whenever_they_are_due(kind: EventKind) -> None:
    pipeline = Pipeline("auction-house")
    pipeline.topic(kind.name, kind.schema)
    pipeline.produces(kind.name)(row_maker(kind, StreamSettings(hot=False)))
    make = fit_producer(pipeline.feeds[kind.name].make, parse_schema(kind.schema))
    assert make(100, pa.nulls(20)) == rows(kind, 100, 120, StreamSettings(hot=False))
    few_columns = row_maker(kind, StreamSettings(), columns=("dateTime",))
    assert few_columns(7, pa.nulls(2)).column_names == ["dateTime"]


@pytest.mark.parametrize(
    ("kind", "first", "count", "setting", "expected"),
    [
        pytest.param(
            kind, first, count, SETTINGS[name], expected, id=f"{kind.name} from {first}, {name}"
        )
        for kind, first, count, name, expected in [
            (PERSONS, 0, 200, "reference", "247fb787e2e6cf8e"),
            (AUCTIONS, 0, 200, "reference", "5dace9da518884b9"),
            (BIDS, 0, 2000, "reference", "ec8cd0849a83efbc"),
            (BIDS, 900_000, 1000, "reference", "90648f834ea8acf3"),
            (AUCTIONS, 50_000, 200, "thesis", "bdfdcef8f94e68ae"),
            (BIDS, 900_000, 1000, "thesis", "ee0c403d2ad168b8"),
            (AUCTIONS, 0, 200, "wave", "e49a5c5a0724568a"),
        ]
    ],
)
def test_the_stream_stays_what_it_was(
    kind: EventKind, first: int, count: int, setting: StreamSettings, expected: str
) -> None:
    assert digest(rows(kind, first, first + count, setting)) == expected
