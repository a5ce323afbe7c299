"""Figures of the stream that were published, or measured with the reference's own classes."""

from collections.abc import Iterator

import duckdb
import numpy as np
import pytest

from penstock.nexmark.event_order import AUCTIONS, BIDS, KINDS, PERSONS
from penstock.nexmark.settings import BASE_MS, StreamSettings
from penstock.nexmark.splitmix import Ints
from penstock.nexmark.stream import rows
from penstock.nexmark.times import FixedRate

MILLION = 1_000_000


def numbers(setting: StreamSettings, events: int = MILLION) -> dict[str, Ints]:
    table = rows(
        BIDS, *BIDS.rows_within(0, events), setting, ("auction", "bidder", "price", "dateTime")
    )
    return {name: table[name].cast("int64").to_numpy() for name in table.column_names}


@pytest.fixture(scope="module")
def bids() -> dict[str, Ints]:
    """The bids of a million events."""
    return numbers(StreamSettings())


def test_bids_on_every_123rd_auction() -> None:
    """Query 2 over 100,000 events."""
    bids = numbers(StreamSettings(), 100_000)
    matching = bids["price"][bids["auction"] % 123 == 0]
    assert (len(matching), matching.sum()) == (394, 2_934_195_312)


QUERIES = {
    "3": (
        "select p.name from auctions a join persons p on a.seller = p.id"
        " where a.category = 10 and p.state in ('OR', 'ID', 'CA')",
        548,
    ),
    "5": (
        "with slid as (select auction, unnest(generate_series("
        "epoch_ms(dateTime) // 2000 - 4, epoch_ms(dateTime) // 2000)) s from bids),"
        " counted as (select auction, s, count(*) num from slid group by all)"
        " select * from counted where num = (select max(num) from counted c where c.s = counted.s)",
        9,
    ),
    "8": (
        "select distinct p.id, p.name, epoch_ms(p.dateTime) // 10000 from persons p join auctions a"
        " on p.id = a.seller and epoch_ms(p.dateTime) // 10000 = epoch_ms(a.dateTime) // 10000",
        972,
    ),
    "8, pairs": (
        "select p.id from persons p join auctions a"
        " on p.id = a.seller and epoch_ms(p.dateTime) // 10000 = epoch_ms(a.dateTime) // 10000",
        5774,
    ),
    "11, one session a bidder": ("select distinct bidder from bids", 1930),
}


@pytest.fixture(scope="module")
def database() -> Iterator[duckdb.DuckDBPyConnection]:
    """The first 100,000 events."""
    with duckdb.connect(config={"threads": 1}) as database:
        for name, kind in KINDS.items():
            database.register(name, rows(kind, *kind.rows_within(0, 100_000), StreamSettings()))
        yield database


@pytest.mark.parametrize(("query", "expected"), QUERIES.values(), ids=QUERIES)
def test_rows_of_queries(query: str, expected: int, database: duckdb.DuckDBPyConnection) -> None:
    assert len(database.execute(query).fetchall()) == expected


def test_bids_without_their_auction_or_bidder(bids: dict[str, Ints]) -> None:
    """A million events name 766 times an auction that never opens, 40,299 times nobody."""
    auctions = rows(AUCTIONS, 0, 60_000, StreamSettings(), ("id",))["id"].to_numpy()
    assert np.count_nonzero(~np.isin(bids["auction"], auctions)) == 766
    persons = rows(PERSONS, 0, 20_000, StreamSettings(), ("id",))["id"].to_numpy()
    assert np.count_nonzero(~np.isin(bids["bidder"], persons)) == 40_299


def test_hot_ones_get_their_share(bids: dict[str, Ints]) -> None:
    ids = BIDS.ids(0, 920_000)
    newest = 3 * (ids // 50) + np.minimum(ids % 50 - 1, 2)
    assert np.mean(bids["auction"] == 1000 + newest // 100 * 100) == pytest.approx(0.505, abs=0.005)
    hot_bidder = 2001 + ids // 5000 * 100
    assert np.mean(bids["bidder"] == hot_bidder) == pytest.approx(0.75, abs=0.002)
    off = numbers(StreamSettings(hot=False), 100_000)
    assert np.mean(off["bidder"] == hot_bidder[: len(off["bidder"])]) < 0.01


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        pytest.param(StreamSettings(), 19_918, id="10,000 events/s: nobody comes back"),
        pytest.param(StreamSettings(clock=FixedRate(1000)), 35_927, id="1,000 events/s"),
        pytest.param(StreamSettings(clock=FixedRate(200)), 144_068, id="200 events/s"),
        pytest.param(StreamSettings(clock=FixedRate(200), hot=False), 154_369, id="200, hot off"),
    ],
)
def test_sessions_of_bidders(setting: StreamSettings, expected: int) -> None:
    """Query 11: ten seconds without a bid end a session."""
    bids = numbers(setting)
    order = np.lexsort((bids["dateTime"], bids["bidder"]))
    bidder, at_us = bids["bidder"][order], bids["dateTime"][order]
    again = (np.diff(bidder) == 0) & (np.diff(at_us) <= 10_000_000)
    assert len(bidder) - np.count_nonzero(again) == expected


def test_a_million_events_last_100_seconds(bids: dict[str, Ints]) -> None:
    at_ms = bids["dateTime"] // 1000 - BASE_MS
    assert (at_ms[0], at_ms[-1]) == (0, 99_999)
    last = rows(AUCTIONS, 59_999, 60_000, StreamSettings(), ("dateTime",))["dateTime"].cast("int64")
    assert last.to_pylist() == [(BASE_MS + 100_000) * 1000]


def test_prices_are_as_likely_in_each_magnitude(bids: dict[str, Ints]) -> None:
    assert bids["price"].min() >= 100 and bids["price"].max() <= 100_000_000
    share = np.histogram(np.log10(bids["price"]), bins=6, range=(2, 8))[0] / MILLION / 0.92
    assert share == pytest.approx(np.full(6, 1 / 6), abs=0.002)
