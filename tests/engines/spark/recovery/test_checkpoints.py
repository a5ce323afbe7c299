"""Spark's log of offsets, read from outside; the files are as Spark 4.3 wrote them."""

from pathlib import Path

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.kinds.native import read_plan, share_rows
from penstock.engines.spark.recovery.checkpoints import (
    read_committed_ends,
    read_last_batch,
    read_planned_batch,
)
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import parse_schema

CONF = '{"batchWatermarkMs":2500,"conf":{"spark.sql.shuffle.partitions":"%d"}}'
TASK = TaskRecord(rows_in=0, rows_out=1, busy_s=0.1, cpu_s=None, began=0, ended=1)


def plan(checkpoint: Path, batch: int, partitions: int, *offsets: str) -> None:
    path = checkpoint / "offsets" / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["v1", CONF % partitions, *offsets]))
    (path.parent / f".{batch}.crc").write_bytes(b"crc")


def commit(checkpoint: Path, batch: int) -> None:
    path = checkpoint / "commits" / str(batch)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('v1\n{"nextBatchWatermarkMs":0}')


def test_nothing_is_planned_before_the_first_batch(tmp_path: Path) -> None:
    assert read_last_batch(tmp_path) is None
    assert read_planned_batch(tmp_path, 3) is None


def test_the_newest_batch_tells_parts_and_offsets(tmp_path: Path) -> None:
    plan(tmp_path, 9, 2, '{"at":{"a":5},"skips":{}}', "-")
    plan(tmp_path, 10, 4, '{"at":{"a":5},"skips":{}}', '{"at":{"b":7},"skips":{}}')
    commit(tmp_path, 9)
    last = read_last_batch(tmp_path)
    assert last is not None
    assert (last.number, last.partitions, last.ends) == (10, 4, {"a": 5, "b": 7})
    assert last.watermark == 2_500_000
    assert not last.is_committed
    before = read_planned_batch(tmp_path, 9)
    assert before is not None
    assert (before.is_committed, before.ends) == (True, {"a": 5})


def test_rows_of_an_uncommitted_batch_are_not_written(tmp_path: Path) -> None:
    assert read_committed_ends(tmp_path) == {}
    plan(tmp_path, 0, 2, '{"at":{"a":5},"skips":{}}')
    assert read_committed_ends(tmp_path) == {}
    commit(tmp_path, 0)
    plan(tmp_path, 1, 2, '{"at":{"a":9},"skips":{}}')
    assert read_committed_ends(tmp_path) == {"a": 5}


def test_a_batch_reads_what_lies_between_two_plans(tmp_path: Path) -> None:
    layout = RunLayout(tmp_path)
    for name in ("a", "b"):
        Topic.create(layout.topic(name), parse_schema("id long"))
    plan(layout.checkpoint("join"), 0, 2, '{"at":{"a":5},"skips":{}}', "-")
    plan(layout.checkpoint("join"), 1, 2, '{"at":{"a":9},"skips":{}}', '{"at":{"b":7},"skips":{}}')
    first = read_plan(layout, "join", 0)
    assert (first.start, first.end) == ({"a": 0}, {"a": 5})
    second = read_plan(layout, "join", 1)
    assert (second.start, second.end) == ({"a": 5, "b": 0}, {"a": 9, "b": 7})
    rows = [task.rows_in for task in share_rows([TASK, TASK, TASK], second)]
    assert rows == [4, 4, 3]
