"""Every query in both variants against DuckDB over the same events, however batches are cut."""

import pickle
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark import cloudpickle
from tests.nexmark.in_memory import Ran, run
from tests.nexmark.plain import plain_columns

from penstock.engines.simulator import library
from penstock.errors import InputError
from penstock.nexmark.event_order import BIDS
from penstock.nexmark.queries import QUERIES
from penstock.nexmark.queries.common import QueryTruth, Variant
from penstock.nexmark.settings import BASE_MS, StreamSettings
from penstock.nexmark.stream import rows as rows_of
from penstock.nexmark.times import FixedRate
from penstock.nexmark.truths import difference, events_of, true_rows
from penstock.pipelines.stateful import try_batches
from penstock.topics.schema import schema_text

EVENTS = 20_000
#: Events per second of event time: so slow that windows close, sessions end, and some wait in vain.
RATES = {"q1": 10_000, "q2": 10_000, "q3": 10, "q5": 50, "q8": 400, "q11": 100}
#: Those of the thesis; the others need Spark.
THESIS = [query for query, entry in QUERIES.items() if "thesis" in entry.truths]
CASES = [(query, variant) for query in THESIS for variant in ("thesis", "reference")]
WITH_STATE = ("q3", "q5", "q8", "q11")
BASE = datetime(2015, 7, 15, tzinfo=UTC)
#: Rows of a batch, and whether an empty one comes last.
CUTS = [
    pytest.param(577, True, id="small batches", marks=pytest.mark.slow),
    pytest.param(1009, False, id="large batches"),
]

every_case = pytest.mark.parametrize(("query", "variant"), CASES)


def setting_of(query: str, variant: Variant) -> StreamSettings:
    rate = 400 if (query, variant) == ("q5", "reference") else RATES[query]
    return StreamSettings(hot=variant == "reference", clock=FixedRate(rate))


@cache
def events(setting: StreamSettings) -> dict[str, pa.Table]:
    return events_of(EVENTS, setting)


def counted(table: pa.Table) -> Counter[tuple[Any, ...]]:
    return Counter(zip(*plain_columns(table).values(), strict=True))


def ran(query: str, variant: Variant, rows: int, last: bool) -> tuple[Ran, pa.Table]:
    """What came out, and what should have."""
    setting = setting_of(query, variant)
    pipeline = QUERIES[query].build(variant, setting)
    found = run(pipeline, events(setting), rows, last=last)
    truth: QueryTruth = QUERIES[query].truths[variant]
    closed = found.closed[truth.closed_by] if truth.closed_by else None
    return found, true_rows(truth, events(setting), closed)


@every_case
@pytest.mark.parametrize(("rows", "last"), CUTS)
def test_a_query_gives_what_is_true(query: str, variant: Variant, rows: int, last: bool) -> None:
    found, true = ran(query, variant, rows, last)
    assert found.topics["out"].column_names == true.column_names
    assert counted(found.topics["out"]) == counted(true)
    assert difference(found.topics["out"], true).is_none
    assert len(true) > 15
    assert not any(found.late.values())


@every_case
def test_nothing_is_wrong_with_it(query: str, variant: Variant) -> None:
    pipeline = QUERIES[query].build(variant)
    assert pipeline.name == query
    pipeline.check()
    assert sum(feed.share for feed in pipeline.feeds.values()) == 1
    kinds = {"q3": ["persons", "auctions"], "q8": ["persons", "auctions"]}.get(query, ["bids"])
    assert list(pipeline.feeds) == kinds


def test_auctions_come_three_times_as_often_as_persons() -> None:
    feeds = QUERIES["q3"].build().feeds
    assert (feeds["persons"].share, feeds["auctions"].share) == (0.25, 0.75)


@pytest.mark.parametrize("query", THESIS)
def test_the_thesis_variant_has_the_shape_of_the_simulated_one(query: str) -> None:
    ours = QUERIES[query].build("thesis").check()
    simulated = library.load_pipeline(query).topology
    assert {op: set(feeders) for op, feeders in ours.upstream.items()} == {
        op: set(feeders) for op, feeders in simulated.upstream.items()
    }


@every_case
def test_its_functions_can_be_sent_to_other_processes(query: str, variant: Variant) -> None:
    for operator in QUERIES[query].build(variant).operators.values():
        sent = cloudpickle.dumps(operator.function)
        assert callable(pickle.loads(sent))
        assert len(sent) < 5_000


@pytest.mark.parametrize("query", THESIS)
def test_an_unknown_variant_is_refused(query: str) -> None:
    with pytest.raises(InputError, match=r"variant: unknown variant 'theses'.*\n.*'thesis'"):
        QUERIES[query].build("theses")


@pytest.mark.slow
@pytest.mark.parametrize(("query", "variant"), [case for case in CASES if case[0] in WITH_STATE])
def test_events_may_be_behind(query: str, variant: Variant) -> None:
    """What several replicas hand on is not in the order in which it happened."""
    setting = setting_of(query, variant)
    late = np.random.default_rng(5)

    def mixed(table: pa.Table) -> pa.Table:
        at = table["dateTime"].cast(pa.int64()).to_numpy()
        return table.take(pa.array(np.argsort(at + late.uniform(0, 1.9e6, len(at)))))

    given = {kind: mixed(rows) for kind, rows in events(setting).items()}
    found = run(QUERIES[query].build(variant, setting), given, 433, last=True)
    truth: QueryTruth = QUERIES[query].truths[variant]
    true = true_rows(truth, given, found.closed[truth.closed_by] if truth.closed_by else None)
    assert counted(found.topics["out"]) == counted(true)
    assert not any(found.late.values())


@pytest.mark.slow
@pytest.mark.parametrize(("query", "variant"), [case for case in CASES if case[0] in WITH_STATE])
def test_what_is_closed_is_forgotten(query: str, variant: Variant) -> None:
    found, _ = ran(query, variant, 1009, last=True)
    setting = setting_of(query, variant)
    never = QUERIES[query].build(variant, setting, delay_s=1e6)
    all_of_it = run(never, events(setting), 1009, last=True)
    for operator, kept in found.kept.items():
        if operator != "largest":  # which never gets anything if nothing is ever closed
            assert kept < 0.75 * all_of_it.kept[operator]


# --- what the single ones are about


def test_query_3_forgets_those_who_wait_too_long() -> None:
    _, true = ran("q3", "thesis", 433, last=True)
    for_ever = QUERIES["q3"].truths["thesis"].sql.replace("<= 300000000", ">= 0")
    assert len(true) < 0.9 * len(
        true_rows(QueryTruth(sql=for_ever), events(setting_of("q3", "thesis")))
    )


def counts_of(
    end_s: int, counts: dict[int, int], complete_s: int | None = None
) -> list[dict[str, Any]]:
    end = BASE + timedelta(seconds=end_s)
    complete = None if complete_s is None else BASE + timedelta(seconds=complete_s)
    window = {"start": end - timedelta(seconds=10), "end": end, "complete": complete}
    return [{"auction": auction, "n": n} | window for auction, n in counts.items()]


def test_query_5_tells_of_all_that_are_equal_when_a_window_is_complete() -> None:
    operator = QUERIES["q5"].build("reference").operators["largest"]
    batches = [
        [*counts_of(10, {1: 3, 2: 5, 3: 5}), *counts_of(14, {1: 3})],
        counts_of(10, {4: 4, 5: 5}),
        counts_of(16, {1: 2}, complete_s=14),
        counts_of(18, {1: 2}, complete_s=14),
    ]
    tried = try_batches(
        operator.function,
        batches,
        schema_text(operator.input_schema),
        schema_text(operator.output_schema),
        operator.slicing,
    )
    assert [table["auction"].to_pylist() for table in tried.outputs[:3]] == [[], [], []]
    told = {(row["end"] - BASE).seconds: set() for row in tried.rows}
    for row in tried.rows:
        told[(row["end"] - BASE).seconds].add((row["auction"], row["n"]))
    assert told == {10: {(2, 5), (3, 5), (5, 5)}, 14: {(1, 3)}}
    assert tried.late == ([], [], [], [])
    assert tried.state.num_rows == 4  # of each open window a row, and how many there are


@pytest.mark.slow
def test_query_5_may_close_many_windows_at_once() -> None:
    setting = setting_of("q5", "reference")
    pipeline = QUERIES["q5"].build("reference", setting)
    # windows of twelve seconds and more are told together, and read in many pieces
    found = run(pipeline, events(setting), 5003, last=True, other={"largest": 97})
    truth = QUERIES["q5"].truths["reference"]
    true = true_rows(truth, events(setting), found.closed["largest"])
    assert counted(found.topics["out"]) == counted(true)
    assert len(true) > 10 and not any(found.late.values())


def test_query_8_tells_of_a_person_once_and_forgets_windows() -> None:
    found, _ = ran("q8", "reference", 433, last=True)
    rows = found.topics["out"].select(["id", "start"]).to_pylist()
    assert len(rows) == len({tuple(row.values()) for row in rows})
    assert 0 < found.kept["join"] < 0.5 * EVENTS * 4 / 50


def test_query_11_has_bids_that_are_exactly_a_gap_apart() -> None:
    """So it matters to which session they belong."""
    setting = setting_of("q11", "reference")
    truth = QUERIES["q11"].truths["reference"]
    apart = QueryTruth(sql=truth.sql.replace("> 10000000", ">= 10000000"), closed_by="window")
    both = [true_rows(each, events(setting), 1 << 60) for each in (truth, apart)]
    assert not difference(*both).is_none


# --- what is true


PUBLISHED = {
    ("q1", "reference"): 92_000,
    ("q2", "reference"): 394,
    ("q3", "reference"): 548,
    ("q5", "reference"): 9,
    ("q8", "thesis"): 5774,
    ("q8", "reference"): 972,
    ("q11", "reference"): 1930,
}


def test_truths_are_those_that_were_published() -> None:
    """Over 100,000 events, everything closed."""
    tables = events_of(100_000, StreamSettings())
    for (query, variant), count in PUBLISHED.items():
        assert len(true_rows(QUERIES[query].truths[variant], tables, 1 << 60)) == count, query


@pytest.mark.slow
def test_truths_end_with_the_watermark() -> None:
    """As Spark has them after a million events: it tells of a session at its end, not after it."""
    last_bid = (
        rows_of(BIDS, 919_999, 920_000, StreamSettings())["dateTime"].cast(pa.int64())[0].as_py()
    )
    columns = ("auction", "bidder", "price", "dateTime")
    tables = {"bids": rows_of(BIDS, 0, 920_000, StreamSettings(), columns)}
    closed = last_bid - 4_000_000
    assert closed == (BASE_MS + 95_999) * 1000
    assert len(true_rows(QUERIES["q5"].truths["reference"], tables, closed)) == 50
    assert len(true_rows(QUERIES["q11"].truths["reference"], tables, closed + 1)) == 16_284


def test_without_a_watermark_nothing_is_closed() -> None:
    tables = events(setting_of("q11", "thesis"))
    assert len(true_rows(QUERIES["q11"].truths["thesis"], tables, None)) == 0


def test_a_difference_is_told_by_its_rows() -> None:
    found = pa.table({"more": ["x"] * 4, "a": [1, 2, 2, 4], "b": ["p", "q", "q", "s"]})
    true = pa.table({"a": [4, 2, 1, 3, 3], "b": ["s", "q", "p", "r", "r"]})
    told = difference(found, true)
    assert told.missing.to_pylist() == [{"a": 3, "b": "r"}] * 2
    assert told.extra.to_pylist() == [{"a": 2, "b": "q"}]
    assert not told.is_none
    assert difference(found, found).is_none


def test_who_has_no_duckdb_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InputError, match=r"needs duckdb: pip install '.\[nexmark\]'"):
        difference(pa.table({"a": [1]}), pa.table({"a": [1]}))
