"""The reference's other queries, in Spark's own words, against DuckDB over the same events."""

import pickle
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from penstock.errors import InputError
from penstock.nexmark.event_order import KINDS
from penstock.nexmark.queries import QUERIES, first_variant
from penstock.nexmark.queries.common import read_from
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.times import FixedRate
from penstock.nexmark.truths import difference, events_of, true_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EVENTS = 10_000
#: Events per second of event time: so slow that there are several windows, hours and days.
RATES = {"q7": 40, "q10": 10, "q14": 0.1, "q17": 0.05, "q20": 2}
OTHERS = [query for query, entry in QUERIES.items() if "thesis" not in entry.truths]

every_query = pytest.mark.parametrize("query", OTHERS)


def setting_of(query: str) -> StreamSettings:
    return StreamSettings(clock=FixedRate(RATES.get(query, 10_000)))


@every_query
def test_nothing_is_wrong_with_it(query: str) -> None:
    pipeline = QUERIES[query].build()
    pipeline.check()
    assert pipeline.name == query and first_variant(query) == "reference"
    assert list(pipeline.feeds) == (["bids", "auctions"] if query == "q20" else ["bids"])
    assert [op.kind for op in pipeline.operators.values()][-2] == (
        "native" if query in ("q7", "q17", "q20") else "frame"
    )
    for operator in pipeline.operators.values():
        sent = cloudpickle.dumps(operator.function)
        assert callable(pickle.loads(sent)) and len(sent) < 5_000


@every_query
def test_a_variant_that_it_does_not_have_is_refused(query: str) -> None:
    told = rf"variant: {query} has no variant 'thesis'\nhint: it has reference only"
    with pytest.raises(InputError, match=told):
        QUERIES[query].build("thesis")
    with pytest.raises(InputError, match="unknown variant 'theses'"):
        QUERIES[query].build("theses")


def test_who_says_nothing_gets_the_thesis_variant_where_there_is_one() -> None:
    assert {query: first_variant(query) for query in ("q1", "q7", "q11", "q22")} == {
        "q1": "thesis",
        "q7": "reference",
        "q11": "thesis",
        "q22": "reference",
    }


@pytest.mark.spark
@pytest.mark.slow
@every_query
def test_a_query_gives_what_is_true(query: str, spark: "SparkSession") -> None:
    """All events at once: without a stream every window is closed, and nothing is forgotten."""
    setting = setting_of(query)
    pipeline, tables = QUERIES[query].build(setting=setting), events_of(EVENTS, setting)
    (own,) = (op for op in pipeline.operators.values() if op.kind in ("frame", "native"))
    frames = []
    for topic in own.reads:
        (kind,) = (kind for kind in KINDS.values() if read_from(kind) == topic)
        rows = tables[kind.name]
        given = rows.select(pipeline.topics[topic].schema.names)
        given = given.append_column("_event", rows["dateTime"])
        frames.append(spark.createDataFrame(given))
    found = own.function(*frames).drop("_event").toArrow()
    schema = own.output_schema
    assert schema is not None
    true = true_rows(QUERIES[query].truths["reference"], tables, 1 << 60)
    assert found.column_names == schema.names == true.column_names
    assert difference(found.cast(schema), true).is_none
    assert len(true) > 15
    told = {"q7": 10, "q14": 3, "q17": 3, "q21": 4}.get(query)
    if told is not None:
        column = {"q7": "price", "q14": "bidTimeType", "q17": "day", "q21": "channel_id"}[query]
        assert len(pa.compute.unique(true[column])) >= told
