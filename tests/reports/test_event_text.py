"""Sentences about events."""

import pytest

from penstock.control.loop import Tick
from penstock.engines.event_json import event_from_json
from penstock.engines.events import DroppedEvent, Event
from penstock.engines.port import Status
from penstock.reports.event_text import describe_event, list_effects


def tick(at: float, *events: Event) -> Tick:
    return Tick(at=at, status=Status(at=at, requested={}, running={}, events=events))


def test_dropped_records_are_summed_up_by_cause() -> None:
    events = [
        DroppedEvent(at=at, operator="a", causes={"time-out": 3, "queue-full": 4}, records=7)
        for at in (1.0, 2.0)
    ]
    assert list(list_effects([tick(5.0, *events)], -1, None)) == [
        "  0:00:01  a loses 6 records (time-out)",
        "  0:00:01  a loses 8 records (queue-full)",
    ]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (
            {"kind": "rescaled", "replicas": 3, "before": 2, "pause_s": 1.5, "after_s": 2.0},
            "a: state went to 3 replicas, stopped for 1.5 s",
        ),
        ({"kind": "revived", "tries": 1, "error": "gone"}, "a: restarted, because gone"),
        ({"kind": "teleported", "replicas": 3}, "teleported a replicas 3"),
        ({"kind": "running", "replicas": 3}, ""),
    ],
)
def test_events_of_every_engine_and_version_have_a_sentence(
    data: dict[str, object], text: str
) -> None:
    assert describe_event(event_from_json({"at": 1.0, "operator": "a", **data})) == text
