"""Rows of 10 MB and topics of 1,000 columns, through a batch and a frame operator."""

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from tests.spark_engines import Started, until
from tests.system.test_operators import drained

from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

pytestmark = pytest.mark.spark

LARGE, COLUMNS = 10_000_000, 1000


def test_large_rows_and_many_columns(started: Started, layout: RunLayout) -> None:
    pipeline = Pipeline("large")
    wide = ", ".join(f"c{number} long" for number in range(COLUMNS))
    pipeline.topic("blobs", "id long, data string", external=True)
    pipeline.topic("blobs-copy", "id long, data string", keep="1 day")
    pipeline.topic("blobs-framed", "id long, data string", keep="1 day")
    pipeline.topic("wide", wide, external=True)
    pipeline.topic("wide-copy", wide, keep="1 day")
    pipeline.topic("wide-framed", wide, keep="1 day")
    for topic in ("blobs", "wide"):

        def copy(batch: pa.RecordBatch) -> pa.RecordBatch:
            return batch

        def frame(df: DataFrame) -> DataFrame:
            return df

        copy.__name__, frame.__name__ = f"copy_{topic}", f"frame_{topic}"
        pipeline.batches(topic, f"{topic}-copy")(copy)
        pipeline.operator(f"{topic}-copy", f"{topic}-framed")(frame)
    make_topics(pipeline, layout)
    with TopicWriter(Topic.open(layout.topic("blobs")), "test") as writer:
        writer.append(pa.table({"id": [1, 2], "data": ["x" * LARGE, "y" * LARGE]}))
    with TopicWriter(Topic.open(layout.topic("wide")), "test") as writer:
        writer.append(pa.table({f"c{number}": [number, -number] for number in range(COLUMNS)}))
    engine = started.engine(pipeline, layout=layout)
    until(engine, drained(engine), 300.0)
    for topic in ("copy", "framed"):
        blobs = Topic.open(layout.topic(f"blobs-{topic}"))
        rows = [row for batch in blobs.read(0, blobs.end) for row in batch.to_pylist()]
        assert [(row["id"], row["data"][0], len(row["data"])) for row in rows] == [
            (1, "x", LARGE),
            (2, "y", LARGE),
        ]
        wide_rows = Topic.open(layout.topic(f"wide-{topic}"))
        (first, second) = (
            row for batch in wide_rows.read(0, wide_rows.end) for row in batch.to_pylist()
        )
        assert [first[f"c{n}"] for n in range(COLUMNS)] == list(range(COLUMNS))
        assert second["c999"] == -999
