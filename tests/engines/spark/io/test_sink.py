"""What a commit writes down; done by hand, without Spark."""

from pathlib import Path

import pyarrow as pa
from tests.tools.by_hand import ByHand

from penstock.engines.spark.recovery.checkpoints import OFFSETS, write_log
from penstock.pipelines.pipeline import Pipeline


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
