"""Calls of a batch operator's function: marked, bounded in time, without rows that kill."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.tools.by_hand import ByHand

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.io import call_marker
from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.io.call_marker import CallMark, read_marks
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.kinds.batch_task import run_batch_task
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.engines.spark.queries import failures
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

ROWS = 10


def run_task(layout: RunLayout, function: Callable[..., Any], **options: Any) -> TaskRecord:
    """Run the task of the operator `work` on all rows of a topic; nothing is committed."""
    pipeline = Pipeline("calls")
    pipeline.topic("in", "id long", external=True)
    pipeline.topic("out", "id long")
    function.__name__ = "work"
    operator = pipeline.batches("in", "out", **options)(function)
    make_topics(pipeline, layout)
    make_operator_config(pipeline, operator, BatchTiming()).save(layout)
    write_command(layout, "work", Command(replicas=1))
    with TopicWriter(Topic.open(layout.topic("in")), "test") as writer:
        writer.append(pa.table({"id": list(range(ROWS))}))
    schemas = {name: Topic.open(layout.topic(name)).schema for name in operator.fills}
    bundle = OperatorBundle(operator=operator, kind=find_spark_kind("batch"), outputs=schemas)
    bounds = [{"at": {"in": offset}, "skips": {}} for offset in (0, ROWS)]
    (task,) = BatchPlanner(layout, "work").plan(*bounds).tasks
    with TaskOutputs(layout, schemas) as outputs:
        return run_batch_task(layout, bundle, task, outputs)


def test_a_call_is_marked_with_its_rows_while_it_lasts(layout: RunLayout) -> None:
    seen: list[tuple[str, int, int]] = []

    def look(batch: pa.RecordBatch) -> pa.RecordBatch:
        seen.extend((mark.topic, mark.first, mark.end) for mark in read_marks(layout, "work"))
        return batch

    run_task(layout, look, chunk_rows=4)
    assert seen == [("in", 0, 4), ("in", 4, 8), ("in", 8, 10)]
    assert read_marks(layout, "work") == []


def test_a_function_that_raises_leaves_its_rows_and_its_traceback(layout: RunLayout) -> None:
    """A driver would only see the Java exception of the task."""

    def work(batch: pa.RecordBatch) -> pa.RecordBatch:
        if 5 in batch["id"].to_pylist():
            raise ValueError("five is not a number")
        return batch

    with pytest.raises(ValueError, match="five"):
        run_task(layout, work, chunk_rows=4)
    failure = failures.load(layout, "work")
    assert failure is not None
    assert (failure.topic, failure.first, failure.end, failure.times) == ("in", 4, 8, 1)
    assert failure.trace.endswith("ValueError: five is not a number")
    assert Path(__file__).name in failure.trace


def test_rows_on_which_a_process_died_twice_are_put_aside(layout: RunLayout) -> None:
    called: list[int] = []

    def work(batch: pa.RecordBatch) -> pa.RecordBatch:
        called.extend(batch["id"].to_pylist())
        return batch

    layout.marks("work").mkdir(parents=True)
    deadly = CallMark(topic="in", first=3, end=4, began_at=0.0, deaths=1)
    (layout.marks("work") / "0.json").write_text(json.dumps(asdict(deadly)))
    done = run_task(layout, work, on_error="dead-letter")
    assert called == [id_ for id_ in range(ROWS) if id_ != 3]
    assert (done.rows_in, done.rows_out, done.put_aside, done.filtered) == (10, 9, 1, 0)


def test_rows_on_which_the_function_raises_are_put_aside_with_place_and_error(
    tmp_path: Path,
) -> None:
    pipeline = Pipeline("letters")
    pipeline.topic("in", "id long", external=True)
    pipeline.topic("out", "id long")

    @pipeline.batches("in", "out", on_error="dead-letter")
    def work(batch: pa.RecordBatch) -> pa.RecordBatch:
        for bad in {3, 7}.intersection(batch["id"].to_pylist()):
            raise ValueError(f"{bad} is no number")
        return batch

    hand = ByHand(tmp_path / "run", pipeline, "work")
    hand.put([{"id": number} for number in range(ROWS)])
    hand.run(ROWS, 1)
    assert [row["id"] for row in hand.out("out")] == [n for n in range(ROWS) if n not in (3, 7)]
    assert list(hand.out("work-errors")) == [
        {
            "topic": "in",
            "offset": bad,
            "error": f"ValueError: {bad} is no number",
            "row": f'{{"id": {bad}}}',
        }
        for bad in (3, 7)
    ]


def test_every_call_has_the_time_that_its_operator_allows(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The watchdog runs during calls only: reading and writing may take longer."""
    steps: list[object] = []

    def begin(seconds: float, **_: object) -> None:
        steps.append(seconds)

    def work(batch: pa.RecordBatch) -> pa.RecordBatch:
        steps.append("call")
        return batch

    watchdog = call_marker.faulthandler
    monkeypatch.setattr(watchdog, "dump_traceback_later", begin)
    monkeypatch.setattr(watchdog, "cancel_dump_traceback_later", lambda: steps.append("end"))
    run_task(layout, work, chunk_rows=5, call_timeout_s=7.0)
    assert steps == [7.0, "call", "end"] * 2
