"""A driver notices batches that hang, and says what a stop waits for. Without Spark."""

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from penstock.engines.events import SlowBatchEvent
from penstock.engines.spark.io.call_marker import CallMark
from penstock.engines.spark.queries import batch_supervisor
from penstock.engines.spark.queries.batch_supervisor import MIN_SLOW_S, BatchSupervisor
from penstock.engines.spark.queries.query_supervisor import QuerySupervisor
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline


class Query:
    """A batch of it runs for ever."""

    isActive = True  # noqa: N815  (Spark's name)
    is_stopped = False

    @property
    def status(self) -> dict[str, Any]:
        return {"message": "Processing", "isTriggerActive": True, "isDataAvailable": True}

    def exception(self) -> None:
        return None

    def stop(self) -> None:
        self.is_stopped = True


class Clock:
    """A monotonic clock by hand; whoever sleeps advances it."""

    def __init__(self) -> None:
        self.now = 1000.0

    def pass_time(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(batch_supervisor.time, "monotonic", lambda: clock.now)
    monkeypatch.setattr(batch_supervisor.time, "sleep", clock.pass_time)
    return clock


@pytest.fixture
def query() -> Query:
    return Query()


@pytest.fixture
def supervisor(layout: RunLayout, query: Query) -> BatchSupervisor:
    pipeline = Pipeline("one")
    pipeline.topic("in", "id long", external=True)
    pipeline.topic("out", "id long")

    @pipeline.batches("in", "out")
    def enrich(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    starter = QuerySupervisor(layout)
    start: Callable[[], Any] = lambda: query  # noqa: E731
    starter.add("enrich", start)
    starter.start()
    return BatchSupervisor(layout, pipeline.operators, {}, starter, usual_s=1.0)


def test_a_call_that_hangs_is_told_with_its_rows(
    supervisor: BatchSupervisor, layout: RunLayout, clock: Clock
) -> None:
    call = CallMark(topic="in", first=7, end=12, began_at=0.0, deaths=0)
    layout.marks("enrich").mkdir(parents=True)
    data = {name: getattr(call, name) for name in call.__slots__}
    (layout.marks("enrich") / "0.json").write_text(json.dumps(data))
    supervisor.is_timing = True
    events = []
    for _ in range(100):
        events += supervisor.update()
        clock.pass_time(1.0)
    (slow,) = events
    assert isinstance(slow, SlowBatchEvent)
    assert (slow.operator, slow.duration_s) == ("enrich", MIN_SLOW_S + 1)
    assert (slow.topic, slow.first_offset, slow.end_offset) == ("in", 7, 12)


@pytest.mark.usefixtures("clock")
def test_a_stop_says_what_it_waits_for_and_does_not_wait_for_ever(
    supervisor: BatchSupervisor, query: Query
) -> None:
    said: list[str] = []
    supervisor.stop_queries(12.0, said.append)
    assert query.is_stopped
    assert [text.partition(";")[0] for text in said] == [
        "waiting for the batch of enrich, 1 s",
        "waiting for the batch of enrich, 6 s",
        "waiting for the batch of enrich, 11 s",
    ]
    assert all("Ctrl-C again" in text for text in said)
