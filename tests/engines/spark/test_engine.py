"""What the engine says and tells while it starts and runs, with queries that are made up."""

from typing import Any

import pyarrow as pa
import pytest
from tests.tools.recording import batch, task

from penstock.engines.events import BehindEvent, CaughtUpEvent, Event, FailedEvent, LateEvent
from penstock.engines.spark import engine as engine_module
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

ROWS = 7869


class Query:
    """Runs, and has had no batch yet."""

    isActive = True  # noqa: N815  (Spark's name)

    @property
    def status(self) -> dict[str, Any]:
        return {"message": "Waiting for data", "isTriggerActive": False, "isDataAvailable": False}

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        """Nothing to stop."""


def copying() -> Pipeline:
    pipeline = Pipeline("copying")
    pipeline.topic("in", "id long", external=True)
    pipeline.topic("out", "id long")

    @pipeline.batches("in", "out")
    def copy(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    return pipeline


@pytest.fixture(autouse=True)
def _queries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "make_query", lambda *_, **__: Query)
    monkeypatch.setattr(engine_module, "MAX_START_S", 0.5)
    monkeypatch.setattr(engine_module, "SAY_EVERY_S", 0.1)
    monkeypatch.setattr(engine_module, "LOOK_S", 0.02)


def test_before_the_first_batch_queues_are_known_and_who_is_waited_for_is_said(
    layout: RunLayout,
) -> None:
    pipeline, said = copying(), list[str]()
    topic = Topic.create(layout.topic("in"), pipeline.topics["in"].schema)
    with TopicWriter(topic, "test") as writer:
        writer.append(pa.table({"id": list(range(ROWS))}))
    engine = SparkEngine(None, pipeline, layout, say=said.append)  # type: ignore[arg-type]
    engine.start()
    assert said[0].startswith("waiting for 1 operator to start: copy (")
    assert said[-1] == "the run begins while operators still start: copy"
    assert engine.queues == {"copy": ROWS}
    assert engine.status().queues == {"copy": ROWS}


def test_a_start_compares_the_checkpoint_with_the_records(layout: RunLayout) -> None:
    """Spark would plan batches anew that have records, and their rows would be lost."""
    BatchLog(layout.batches("copy")).put(batch(0, tasks=[task(rows=630)]))
    engine = SparkEngine(None, copying(), layout)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="does not have batch 0, which is committed"):
        engine.start()


def test_what_happens_to_an_operator_is_reported_at_once(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[Event] = []
    engine = SparkEngine(None, copying(), layout, report=events.append)  # type: ignore[arg-type]
    engine.start()
    failed = FailedEvent(at=0.0, operator="copy", error="column 'id' (long) is missing")
    monkeypatch.setattr(engine._monitor.batch_supervisor, "update", lambda: [failed])
    engine._monitor._queries_checked_at = 0.0
    engine.advance(0.01)  # the next tick may be minutes away
    assert [type(event) for event in events] == [FailedEvent]
    assert [type(event) for event in engine.status().events] == [FailedEvent]


def test_rows_that_spark_drops_as_late_are_counted_once(
    layout: RunLayout, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of operators with Spark's own state only the progress of their queries knows them."""
    pipeline = Pipeline("windows")
    pipeline.topic("in", "at timestamp", external=True)
    pipeline.topic("out", "at timestamp")

    @pipeline.native("in", "out")
    def count(frame: Any) -> Any:
        raise AssertionError("nothing starts here")

    progress = [
        {"batchId": number, "stateOperators": [{"numRowsDroppedByWatermark": late}]}
        for number, late in enumerate((0, 3, 4))
    ]
    make_topics(pipeline, layout)
    engine = SparkEngine(None, pipeline, layout)  # type: ignore[arg-type]
    engine._monitor.track(pipeline.operators["count"], 1)
    query: Any = Query()
    engine._query_supervisor.queries["count"] = query
    events: list[Event] = []
    for known in (2, 3, 3):
        monkeypatch.setattr(query, "recentProgress", progress[:known], raising=False)
        engine._monitor._queries_checked_at = 0.0
        engine.advance(0.01)
        status = engine.status()
        events += status.events
    assert status.late == {"count": 7}
    late = [event for event in events if isinstance(event, LateEvent)]
    assert [(event.records, event.total) for event in late] == [(3, 3), (4, 7)]


def test_events_of_a_tick_are_in_the_order_of_time(layout: RunLayout) -> None:
    engine = SparkEngine(None, copying(), layout)  # type: ignore[arg-type]
    engine._monitor._events = [
        CaughtUpEvent(at=29.0, operator="files", backlog=0.0, unit="files"),
        BehindEvent(at=22.0, operator="files", backlog=7.0, unit="files"),
    ]
    assert [event.at for event in engine.status().events] == [22.0, 29.0]
