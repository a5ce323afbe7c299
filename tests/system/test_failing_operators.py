"""Operators of every kind that fail on real Spark: each is told with its rows and its cause."""

import os
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.functions import udf
from pyspark.sql.types import LongType
from tests.spark_engines import QUICK, until

from penstock.engines.events import Event, FailedEvent
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

pytestmark = pytest.mark.spark

ROWS, BAD = 20, 12


def on_bad_row(act: Callable[[], object]) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    """Return a function that does something when it sees the bad row."""

    def function(batch: pa.RecordBatch) -> pa.RecordBatch:
        if BAD in batch["id"].to_pylist():
            act()
        return batch

    return function


def raise_error() -> None:
    raise ValueError("twelve is not a number")


class Refusing(DataSource):
    """A source of Python's that cannot be read."""

    @classmethod
    def name(cls) -> str:
        return "refusing"

    def schema(self) -> str:
        return "id long"

    def simpleStreamReader(self, schema: Any) -> SimpleDataSourceStreamReader:  # noqa: N802, ARG002
        class Reader(SimpleDataSourceStreamReader):
            def initialOffset(self) -> dict[str, int]:  # noqa: N802
                return {"at": 0}

            def read(self, start: dict[str, int]) -> Any:  # noqa: ARG002
                raise KeyError("no such table")

            def readBetweenOffsets(self, *_: Any) -> Iterator[Any]:  # noqa: N802
                return iter(())

            def commit(self, end: dict[str, int]) -> None:
                pass

        return Reader()


def failing() -> Pipeline:
    pipeline = Pipeline("failing")
    pipeline.topic("in", "id long", external=True)

    def batches(name: str, function: Callable[..., Any], **options: Any) -> None:
        function.__name__ = name
        pipeline.topic(f"{name}-out", "id long")
        pipeline.batches("in", f"{name}-out", chunk_rows=5, max_replicas=1, **options)(function)

    batches("raises", on_bad_row(raise_error))
    batches("leaves", on_bad_row(lambda: os._exit(3)))
    batches("hangs", on_bad_row(lambda: time.sleep(500)), call_timeout_s=1.0)
    batches("misfits", lambda batch: {"other": batch["id"]})
    batches("letters", on_bad_row(lambda: os._exit(3)), on_error="dead-letter")
    pipeline.topic("frame-out", "id long")

    @pipeline.operator("in", "frame-out", max_replicas=1)
    def frame(df: DataFrame) -> DataFrame:
        def refuse(number: int) -> int:
            raise TypeError(f"{number} again")

        return df.select(udf(refuse, LongType(), useArrow=False)("id").alias("id"))

    @pipeline.ingest("ingest-out")
    def ingest(spark: SparkSession) -> DataFrame:
        return spark.readStream.format("refusing").load()

    @pipeline.egress("in")
    def egress(df: DataFrame) -> Any:
        def write(_frame: DataFrame, _number: int) -> None:
            raise PermissionError("the database is read-only")

        return df.writeStream.foreachBatch(write)

    return pipeline


def column(layout: RunLayout, topic: str, name: str) -> list[Any]:
    log = Topic.open(layout.topic(topic))
    return [value for rows in log.read(log.first, log.end) for value in rows[name].to_pylist()]


def rows_named(text: str) -> range:
    """The rows that a message names; where a call begins depends on the batches before."""
    found = re.search(r"rows (\d+) to (\d+) of topic in", text)
    assert found is not None, text
    return range(int(found[1]), int(found[2]) + 1)


def test_each_failure_is_told_with_its_rows_and_its_cause(
    spark: SparkSession, layout: RunLayout
) -> None:
    pipeline, events = failing(), list[Event]()
    spark.dataSource.register(Refusing)
    log = Topic.create(layout.topic("in"), pipeline.topics["in"].schema)
    with TopicWriter(log, "test") as writer:
        writer.append(pa.table({"id": list(range(ROWS))}))
    engine = SparkEngine(
        spark, pipeline, layout, timing=QUICK, retry_for_s=600, report=events.append
    )
    engine.start()
    try:
        wrong = set(pipeline.operators) - {"letters"}
        letters = Topic.open(layout.topic("letters-out"))
        until(engine, lambda: set(engine.operator_errors) == wrong and letters.refresh() >= 19, 240)
    finally:
        engine.stop(patience_s=10)
    texts = engine.operator_errors
    assert texts["raises"].startswith("raises failed on rows ")
    assert BAD in rows_named(texts["raises"])
    assert texts["raises"].endswith("ValueError: twelve is not a number")
    assert "worker process died while processing rows " in texts["leaves"]
    assert BAD in rows_named(texts["leaves"])
    assert "call of hangs took longer than 1 s on rows " in texts["hangs"]
    assert BAD in rows_named(texts["hangs"])
    assert "test_failing_operators.py" in texts["hangs"]  # where it hangs
    assert "misfits.rows: column 'id' (long) is missing" in texts["misfits"]
    assert "Traceback" not in texts["misfits"]
    assert "of topic in" in texts["frame"]
    assert texts["frame"].endswith("again")
    assert texts["ingest"].endswith("KeyError: 'no such table'")
    assert texts["egress"].endswith("PermissionError: the database is read-only")
    for text in texts.values():
        assert "RUNNABLE" not in text
        assert "\tat " not in text
    failed = {event.operator: event for event in events if isinstance(event, FailedEvent)}
    assert {name for name, event in failed.items() if event.is_users} == wrong
    first, end = failed["leaves"].first_offset, failed["leaves"].end_offset
    assert first is not None and end is not None and first <= BAD < end
    # what kills its worker was put aside, and the rest is there once
    assert sorted(column(layout, "letters-out", "id")) == [n for n in range(ROWS) if n != BAD]
    assert column(layout, "letters-errors", "offset") == [BAD]
    assert column(layout, "letters-errors", "error") == ["the worker process died"]
