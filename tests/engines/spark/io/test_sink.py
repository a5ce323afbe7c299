"""What a commit writes down; done by hand, without Spark."""

import os
from pathlib import Path

import pyarrow as pa
import pytest
from tests.tools.by_hand import ByHand

from penstock.engines.spark.io.sink import TopicSink
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.engines.spark.operator_bundle import OperatorBundle, save_bundle
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.recovery.checkpoints import OFFSETS, write_log
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic


def test_a_record_keeps_what_spark_planned_so_that_its_log_can_be_rebuilt(tmp_path: Path) -> None:
    pipeline = Pipeline("copies")
    pipeline.topic("in", "id long", external=True)
    pipeline.topic("out", "id long")

    @pipeline.batches(reads="in", writes="out")
    def copy(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    hand = ByHand(tmp_path / "run", pipeline, "copy")
    hand.put([{"id": number} for number in range(5)])
    text = 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1}\n{"at": {"in": 5}, "skips": {}}'
    write_log(hand.layout.checkpoint("copy"), OFFSETS, 0, text)
    hand.run(5, 1)
    record = hand.log.get(0)
    assert record is not None
    assert (record.offset_log, dict(record.end)) == (text, {"in": 5})


def test_spark_cannot_lose_what_it_read_for_a_batch_that_has_a_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only Spark's checkpoint knows how far an ingest is, so it is on the disk first."""
    layout, pipeline = RunLayout(tmp_path), Pipeline("files")
    pipeline.topic("raw", "id long")

    @pipeline.ingest(writes="raw")
    def files(spark: object) -> object:
        raise AssertionError("nothing starts here")

    make_topics(pipeline, layout)
    operator = pipeline.operators["files"]
    outputs = {"raw": Topic.open(layout.topic("raw")).schema}
    kind = find_spark_kind(operator.kind)
    bundle = OperatorBundle(operator=operator, kind=kind, outputs=outputs, inputs={})
    save_bundle(layout.code("files"), bundle)
    checkpoint, record = layout.checkpoint("files"), layout.batches("files") / f"{0:020d}.json"
    write_log(checkpoint, OFFSETS, 0, "v1\n{}\n{}")
    (checkpoint / "sources" / "0").mkdir(parents=True)
    (checkpoint / "sources" / "0" / "0").write_text("v1\n")
    synced: dict[Path, bool] = {}

    def sync(descriptor: int) -> None:
        synced.setdefault(Path(f"/proc/self/fd/{descriptor}").readlink(), record.exists())

    monkeypatch.setattr(os, "fsync", sync)
    TopicSink(str(tmp_path), "files").commit([], 0)
    assert record.exists()
    for path in (checkpoint / OFFSETS / "0", checkpoint / "sources" / "0" / "0"):
        assert synced[path] is False, f"{path} is on the disk after the record, or never"
