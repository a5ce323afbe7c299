"""Rows that come after the watermark are told: event, status, journal, console, summary."""

import time
from types import SimpleNamespace

from penstock.control.loop import Tick
from penstock.core.topology import Topology
from penstock.engines.event_json import event_fields
from penstock.engines.events import LateEvent
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.microbatch.snapshot_builder import build_status
from penstock.reports.event_text import describe_event
from penstock.reports.live_view import event_lines
from penstock.reports.result_text import late_text
from penstock.runs.scores import Scores
from penstock.runs.tick_json import tick_from_json, tick_to_json


def task(late: int) -> TaskRecord:
    return TaskRecord(
        rows_in=10, rows_out=0, busy_s=0.1, cpu_s=None, began=0.0, ended=0.1, late=late
    )


def followed(*batches: tuple[int, ...]) -> OperatorTracker:
    """An operator whose batches had so many late rows in each task."""
    now = time.time()
    records = [
        BatchRecord(
            batch=number,
            start={"in": number},
            end={"in": number + 1},
            planned_at=now,
            committed_at=now,
            tasks=tuple(map(task, late)),
        )
        for number, late in enumerate(batches)
    ]
    topic = SimpleNamespace(first=0, end=9, refresh=lambda: 9)
    one = OperatorTracker(
        name="minutes",
        upstream=(),
        max_replicas=2,
        log=SimpleNamespace(next=0, read_new=lambda: [records.pop(0)] if records else []),
        topics={"in": topic},
        batch_s=1.0,
        late_to="late",
        requested=2,
        running=2,
    )
    one.begin()
    return one


def test_late_rows_are_events_and_sums() -> None:
    one = followed((0, 0), (2, 1), (0, 0), (4, 0))
    events = [event for _ in range(4) for event in one.update(time.time(), 60.0)]
    late = [event for event in events if isinstance(event, LateEvent)]
    assert [event_fields(event) for event in late] == [
        {"records": 3, "total": 3, "kept_in": "late"},
        {"records": 4, "total": 7, "kept_in": "late"},
    ]
    topology = Topology.of({"minutes": []})
    status = build_status({"minutes": one}, topology, (), at=1.0, second=lambda at: at)
    assert status.late == {"minutes": 7}

    tick = Tick(at=1.0, status=status)
    again = tick_from_json(tick_to_json(tick))
    assert again.status.late == {"minutes": 7}
    scores = Scores(None)
    scores.add(again)
    result = scores.result()
    assert result is not None and result.late_records == {"minutes": 7}
    assert late_text({"minutes": 7}) == "7 rows came after the watermark: minutes 7"


def test_only_the_first_late_rows_are_a_warning() -> None:
    one = followed((), (3, 0), (4, 0))
    events = [event for _ in range(3) for event in one.update(time.time(), 60.0)]
    topology = Topology.of({"minutes": []})
    status = build_status({"minutes": one}, topology, (), at=1.0, second=lambda at: at)
    lines = [
        line
        for event in events
        for line in event_lines(
            Tick(at=1.0, status=type(status)(at=1.0, requested={}, running={}, events=(event,)))
        )
    ]
    (line,) = [line for line in lines if "late" in line]
    assert "WARNING minutes: 3 rows came too late; topic late keeps them" in line
    assert describe_event(events[-1]).startswith("minutes: 4 rows came too late (7 so far)")
