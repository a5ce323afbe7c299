"""Where batches end; planned without Spark."""

from typing import Any

import pyarrow as pa
import pytest

from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic


def build_pipeline() -> Pipeline:
    """One operator with Spark's own state, and one that passes rows on to it."""
    pipeline = Pipeline("times")
    pipeline.topic("raw", "at timestamp", external=True)
    pipeline.topic("clean", "at timestamp")
    pipeline.topic("windows", "at timestamp")

    @pipeline.batches(reads="raw", writes="clean")
    def copy(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.native(reads="clean", writes="windows")
    def count(frame: Any) -> Any:
        raise AssertionError("nothing starts here")

    return pipeline


class Input:
    """The topic that an operator reads, written in parts of source batches."""

    def __init__(self, layout: RunLayout, name: str) -> None:
        self._topic, self._commits = Topic.open(layout.topic(name)), 0

    def put(self, rows: int, *, is_complete: bool) -> None:
        table = pa.table({name: [0] * rows for name in self._topic.schema.names})
        writer = self._topic.segment_writer()
        writer.write(table.cast(self._topic.schema).to_batches()[0])
        segment = writer.close()
        assert segment is not None
        self._topic.publish("test", self._commits, [segment], 1.0, is_complete=is_complete)
        self._commits += 1


@pytest.mark.parametrize(
    ("operator", "reads", "ends"),
    [
        # Spark would take the newest time of a part for that of all
        pytest.param("count", "clean", [0, 7, 7], id="Spark's own state waits for the whole"),
        pytest.param("copy", "raw", [3, 7, 9], id="others read a part, if there is no more"),
    ],
)
def test_batches_end_where_source_batches_end(
    layout: RunLayout, operator: str, reads: str, ends: list[int]
) -> None:
    pipeline = build_pipeline()
    make_topics(pipeline, layout)
    timing = BatchTiming(min_interval_s=0.0)
    make_operator_config(pipeline, pipeline.operators[operator], timing).save(layout)
    write_command(layout, operator, Command(replicas=1))
    planner, topic = BatchPlanner(layout, operator, reads), Input(layout, reads)
    offset: dict[str, Any] = {"at": {reads: 0}, "skips": {}}
    found = []
    for rows, is_complete in ((3, False), (4, True), (2, False)):
        topic.put(rows, is_complete=is_complete)
        offset = planner.next_offset(offset)
        found.append(offset["at"][reads])
    assert found == ends
