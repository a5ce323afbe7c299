"""Two output topics of one batch: both or none, whatever dies between them. Without Spark."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tests.tools.by_hand import ByHand

from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.operator_totals import read_accounts
from penstock.state.handle import State
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.topic import Topic


def by_parity(kind: str, **options: Any) -> Pipeline:
    """Numbers to two topics, by a batch operator or by one with slices."""
    pipeline = Pipeline("numbers")
    pipeline.topic("numbers", "id long", external=True)
    pipeline.topic("odd", "id long")
    pipeline.topic("even", "id long")

    def parity(batch: pa.RecordBatch, state: State | None = None) -> dict[str, Any]:
        is_odd = pc.equal(pc.bit_wise_and(batch["id"], 1), 1)
        if state is not None:
            state.put({"id": batch["id"], "n": batch["id"]})
        return {"odd": batch.filter(is_odd), "even": batch.filter(pc.invert(is_odd))}

    topics = ("odd", "even")
    if kind == "batch":
        pipeline.batches("numbers", topics, **options)(parity)
    else:
        pipeline.sliced("numbers", topics, key="id", state="n long", slices=4, **options)(parity)
    return pipeline


def ids(hand: ByHand, topic: str) -> list[int]:
    return sorted(row["id"] for row in hand.out(topic))


def put(hand: ByHand, start: int, end: int) -> None:
    hand.put([{"id": number} for number in range(start, end)])


@pytest.mark.parametrize("kind", ["batch", "sliced"])
def test_rows_come_once_in_each_topic_though_a_kill_comes_between_them(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    hand = ByHand(tmp_path / "run", by_parity(kind), "parity")
    put(hand, 0, 20)
    publish = Topic.publish

    def publish_once(topic: Topic, *given: Any, **options: Any) -> Any:
        if topic.name == "even":
            raise KeyboardInterrupt
        return publish(topic, *given, **options)

    monkeypatch.setattr(Topic, "publish", publish_once)
    with pytest.raises(KeyboardInterrupt):
        hand.run(20, 2)
    assert (ids(hand, "odd"), ids(hand, "even")) == ([*range(1, 20, 2)], [])
    monkeypatch.undo()
    recover(hand.pipeline, hand.layout)
    for _ in range(2):  # Spark runs the batch again, and a second start changes nothing
        assert (ids(hand, "odd"), ids(hand, "even")) == ([*range(1, 20, 2)], [*range(0, 20, 2)])
        hand.run(20, 3)
        recover(hand.pipeline, hand.layout)
        hand.batch, hand.at = 0, {"numbers": 0}
    account = read_accounts(hand.pipeline, hand.layout)["parity"]
    assert (account.rows_in, account.rows_out) == (20, 10)
    assert (account.lost, account.doubled) == (0, 0)


def test_rows_that_a_topic_lacks_are_lost(tmp_path: Path) -> None:
    hand = ByHand(tmp_path / "run", by_parity("batch"), "parity")
    put(hand, 0, 20)
    hand.run(20, 1)
    topic = Topic.open(hand.layout.topic("even"))
    writer = topic.segment_writer()
    writer.write(next(topic.read(0, 3)))
    segment = writer.close()
    assert segment is not None
    topic.publish("parity", 1, [segment], 1.0)
    account = read_accounts(hand.pipeline, hand.layout)["parity"]
    assert (account.lost, account.doubled) == (0, segment.rows)


def test_a_full_queue_of_any_topic_holds_the_operator_back(layout: RunLayout) -> None:
    pipeline = by_parity("batch")
    pipeline.topic("copies", "id long")

    @pipeline.batches("even", "copies", queue_limit=3)
    def copy(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    hand = ByHand(layout.run, pipeline, "parity")
    timing = BatchTiming(min_interval_s=0.0)
    make_operator_config(pipeline, pipeline.operators["parity"], timing).save(layout)
    write_command(layout, "parity", Command(replicas=1))
    put(hand, 0, 20)
    hand.run(10, 1)
    planner, offset = BatchPlanner(layout, "parity"), {"at": {"numbers": 10}, "skips": {}}
    assert planner.next_offset(offset) == offset
    save_position(layout.topic("even"), "copy", 4)
    assert planner.next_offset(offset)["at"]["numbers"] > 10
