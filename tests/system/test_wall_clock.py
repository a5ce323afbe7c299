"""A wall clock that is set back an hour stalls neither a source nor the engine."""

import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.tools.recording import batch, task

from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog, SteadyLog
from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.steady_clock import SteadyClock

HOUR_S = 3600.0


def copying() -> Pipeline:
    pipeline = Pipeline("copying")
    pipeline.topic("in", "id long", external=True)
    pipeline.topic("out", "id long")

    @pipeline.batches("in", "out")
    def copy(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    return pipeline


@pytest.fixture
def set_back(monkeypatch: pytest.MonkeyPatch) -> Any:
    def set_back() -> None:
        real = time.time
        monkeypatch.setattr(time, "time", lambda: real() - HOUR_S)

    return set_back


def test_a_source_goes_on(layout: RunLayout, set_back: Any) -> None:
    pipeline = copying()
    make_topics(pipeline, layout)
    make_operator_config(
        pipeline, pipeline.operators["copy"], BatchTiming(min_interval_s=0.05)
    ).save(layout)
    write_command(layout, "copy", Command(replicas=1))
    with TopicWriter(Topic.open(layout.topic("in")), "test") as writer:
        writer.append(pa.table({"id": list(range(100))}))
    mind = BatchPlanner(layout, "copy")
    first = mind.next_offset({"at": mind.first(), "skips": {}})
    set_back()
    deadline = time.monotonic() + 20
    while (end := mind.next_offset(first)) == first and time.monotonic() < deadline:
        time.sleep(0.01)
    assert end["at"]["in"] > first["at"]["in"] > 0


def test_the_engine_goes_on(layout: RunLayout, set_back: Any) -> None:
    engine = SparkEngine(None, copying(), layout)  # type: ignore[arg-type]
    set_back()
    thread = threading.Thread(target=engine.advance, args=(0.1,), daemon=True)
    thread.start()
    thread.join(20)
    assert not thread.is_alive()
    assert 0 <= engine.at < HOUR_S / 2


def test_records_that_are_stamped_afterwards_are_of_now(tmp_path: Path, set_back: Any) -> None:
    clock, log = SteadyClock(lambda: time.time()), BatchLog(tmp_path)
    steady = SteadyLog(BatchLog(tmp_path), clock)
    set_back()
    wall = time.time()
    log.put(batch(0, tasks=[task(rows=1, busy_s=0.5)], at=wall - 1, took_s=1.0))
    (record,) = steady.read_new()
    assert abs(record.committed_at - clock()) < 60
    assert record.committed_at - record.planned_at == pytest.approx(1.0)
    assert steady.next == 1
