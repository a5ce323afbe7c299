"""The stream as a source of Spark's: its rows are the generator's, each exactly once."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from penstock.errors import InputError
from penstock.nexmark.event_order import AUCTIONS, BIDS, PERSONS, EventKind
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.stream import rows
from penstock.nexmark.times import FixedRate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.nexmark.spark_source import SourceOptions

EVENTS = 5000


def wanted(**options: Any) -> "SourceOptions":
    # Spark takes a second to import
    from penstock.nexmark.spark_source import SourceOptions  # noqa: PLC0415

    return SourceOptions.parse({name: str(value) for name, value in options.items()})


def parts(asked: "SourceOptions", first: int, end: int) -> pa.Table:
    found = [batch for each in asked.cut(first, end) for batch in asked.read(each)]
    return pa.Table.from_batches(found, asked.schema)


@pytest.mark.parametrize("kind", [PERSONS, AUCTIONS, BIDS], ids=lambda kind: kind.name)
def test_any_part_is_that_part_of_the_stream(kind: EventKind) -> None:
    asked = wanted(kind=kind.name, events=EVENTS, partitions=3)
    assert asked.rows == EVENTS * kind.share // 50
    assert parts(asked, 17, 90) == rows(kind, 17, 90, StreamSettings())
    assert asked.cut(40, 40) == []


def test_options_in_whatever_case() -> None:
    asked = wanted(KIND="bids", hot="off", rate=200, columns="price, auction", rowsperbatch=7)
    setting = StreamSettings(hot=False, clock=FixedRate(200))
    assert parts(asked, 0, 40_000) == rows(BIDS, 0, 40_000, setting, ("price", "auction"))
    assert (asked.rows, asked.rows_per_batch, asked.partitions) == (None, 7, 1)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "kind: unknown kind of event ''"),
        ({"kind": "bid"}, "kind: unknown kind of event 'bid'.*\n.*'bids'"),
        ({"kind": "bids", "event": "5"}, "event: unknown option\n.*'events'"),
        ({"kind": "bids", "events": "0"}, "events: must be a whole number above 0, got '0'"),
        ({"kind": "bids", "partitions": "-2"}, "partitions: must be a whole number"),
        ({"kind": "bids", "rate": "fast"}, "rate: must be a number, got 'fast'"),
        ({"kind": "bids", "rate": "0"}, "rate: must be from 0.01"),
        ({"kind": "bids", "hot": "yes"}, "hot: must be on or off, got 'yes'"),
        ({"kind": "bids", "columns": "prize"}, "columns: bids have no column 'prize'\n.*'price'"),
    ],
)
def test_what_cannot_be_read_is_refused(options: dict[str, str], told: str) -> None:
    with pytest.raises(InputError, match=told):
        wanted(**options)


def test_what_never_ends_is_not_read_at_once() -> None:
    from penstock.nexmark.spark_source import NexmarkReader, NexmarkStream  # noqa: PLC0415

    endless = wanted(kind="bids")
    with pytest.raises(InputError, match="events: is missing"):
        NexmarkReader(endless)
    with pytest.raises(InputError, match="availableNow"):
        NexmarkStream(endless).prepareForTriggerAvailableNow()


# --- on Spark


@pytest.fixture
def source(spark: "SparkSession") -> "SparkSession":
    from penstock.nexmark.spark_source import NexmarkSource  # noqa: PLC0415

    spark.dataSource.register(NexmarkSource)
    return spark


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("kind", [PERSONS, AUCTIONS, BIDS], ids=lambda kind: kind.name)
def test_a_batch_read_is_the_stream(source: "SparkSession", kind: EventKind) -> None:
    options = {"kind": kind.name, "events": EVENTS, "rate": 100, "partitions": 3}
    frame = source.read.format("penstock-nexmark").options(**options).load()
    assert frame.rdd.getNumPartitions() == 3
    expected = rows(kind, 0, EVENTS * kind.share // 50, StreamSettings(clock=FixedRate(100)))
    assert frame.toArrow().cast(expected.schema) == expected


@pytest.mark.spark
@pytest.mark.slow
def test_a_streaming_read_has_every_row_exactly_once(
    source: "SparkSession", tmp_path: Path
) -> None:
    options = {"kind": "bids", "events": EVENTS, "rowsPerBatch": 2000, "partitions": 2}
    frame = source.readStream.format("penstock-nexmark").options(**options).load()
    kept = frame.writeStream.format("parquet").option("path", str(tmp_path / "rows"))
    kept = kept.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = kept.trigger(availableNow=True).start()
    assert query.awaitTermination(60)
    sizes = [batch["numInputRows"] for batch in query.recentProgress]
    assert sizes == [2000, 2000, 600]
    found = source.read.parquet(str(tmp_path / "rows")).toArrow()
    expected = rows(BIDS, 0, 4600, StreamSettings())
    by = [(name, "ascending") for name in expected.column_names]
    assert found.cast(expected.schema).sort_by(by) == expected.sort_by(by)
