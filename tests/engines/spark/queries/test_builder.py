"""How operators become queries, as far as that needs no Spark."""

import pyarrow as pa
import pytest
from pyspark.sql import types

from penstock.engines.spark.queries.builder import _has_small_rows, make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

SMALL = [
    types.LongType(),
    types.DoubleType(),
    types.DecimalType(9, 2),
    types.BooleanType(),
    types.DateType(),
    types.TimestampType(),
]


@pytest.mark.parametrize(
    "long",
    [
        types.StringType(),
        types.BinaryType(),
        types.ArrayType(types.IntegerType()),
        types.StructType([types.StructField("x", types.IntegerType())]),
        types.VariantType(),
    ],
)
def test_only_rows_has_small_rows_go_without_a_look_at_each(long: types.DataType) -> None:
    small = types.StructType([types.StructField(f"c{i}", t) for i, t in enumerate(SMALL)])
    assert _has_small_rows(small)
    assert not _has_small_rows(small.add("long", long))


def test_a_start_adds_new_nullable_columns_to_a_topic(layout: RunLayout) -> None:
    for columns in ("id long", "id long, note string"):
        pipeline = Pipeline("orders")
        pipeline.topic("in", columns, external=True)
        make_topics(pipeline, layout)
        topic = Topic.open(layout.topic("in"))
        row = {name: [None] for name in topic.schema.names if name not in ("id", "_event")}
        with TopicWriter(topic, "test") as writer:
            writer.append(pa.table({"id": [7], **row}).cast(pa.schema([*topic.schema][:-1])))
    rows = [row for batch in topic.read(0, 2, ["id", "note"]) for row in batch.to_pylist()]
    assert rows == [{"id": 7, "note": None}] * 2
