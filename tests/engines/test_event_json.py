"""Events survive JSON; events of other versions are kept as they are."""

import json
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.event_json import event_fields, event_from_json, event_to_json
from penstock.engines.events import (
    DroppedEvent,
    Event,
    ExecutorLostEvent,
    ExecutorsReadyEvent,
    ExecutorsRequestedEvent,
    FailedEvent,
    KnownEvent,
    RescaledEvent,
    RestartingEvent,
    RevivedEvent,
    RunningEvent,
    UnknownEvent,
    kind_of,
)
from penstock.engines.query_events import (
    ExecutorEffectEvent,
    PartitionsChangedEvent,
    PartitionsRequestedEvent,
    PartitionsRestoredEvent,
    QueryEndedEvent,
    QueryStartedEvent,
    VerdictEvent,
)
from penstock.errors import InputError

RECORDED = Path(__file__).parents[1] / "recorded"
CLASSES = get_args(KnownEvent)

NAMES = st.text("abcdefgh-", min_size=1, max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
COMMON = {"at": NUMBERS, "operator": st.just("") | NAMES}
EXTRA = st.dictionaries(
    NAMES.map(lambda name: f"new_{name}"), st.none() | NUMBERS | NAMES | st.booleans(), max_size=2
).map(FrozenDict)
CAUSES = st.dictionaries(NAMES, st.integers(0, 10**9), min_size=1).map(FrozenDict)


def events_of(event_class: type[Any]) -> st.SearchStrategy[Event]:
    fields = COMMON | {"extra": EXTRA}
    if event_class is DroppedEvent:
        return st.builds(DroppedEvent, **COMMON, causes=CAUSES)
    return st.builds(event_class, **fields, **_floats(event_class))


def _floats(event_class: type[Any]) -> dict[str, st.SearchStrategy[Any]]:
    """JSON of a journal has no infinity."""
    hints = event_class.__annotations__
    plain = {name: NUMBERS for name, hint in hints.items() if hint is float}
    optional = {name: st.none() | NUMBERS for name, hint in hints.items() if hint == float | None}
    return plain | optional


def again(event: Event) -> Event:
    return event_from_json(json.loads(json.dumps(event_to_json(event))))


@pytest.mark.parametrize("event_class", CLASSES)
@given(data=st.data())
def test_every_event_survives_json(event_class: type[Any], data: st.DataObject) -> None:
    event = data.draw(events_of(event_class))
    back = again(event)
    assert back == event
    assert type(back) is type(event)
    assert list(event_to_json(back)) == list(event_to_json(event))


def test_kinds_are_the_words_of_the_journal() -> None:
    assert {event_class.KIND for event_class in CLASSES} == {
        "running", "restart", "resumed", "dropped", "failed", "held", "restarting", "revived",
        "slow-batch", "step", "rescaled", "executors", "behind", "caught-up", "late", "retried",
        "gave-up", "late-tick", "resumed-run", "control", "query-started", "query-ended",
        "executor-effect", "verdict", "partitions-requested", "partitions-changed",
        "partitions-restored",
    }  # fmt: skip


LINES = [
    ('{"at":10,"kind":"running","operator":"map","replicas":1}', RunningEvent),
    ('{"at":1.5,"kind":"running","operator":"a","replicas":3,"before":2}', RunningEvent),
    (
        '{"at":1.5,"kind":"running","operator":"a","replicas":3,"after_s":0.5,"batches":2}',
        RunningEvent,
    ),
    ('{"at":1.5,"kind":"dropped","operator":"a","retention":7}', DroppedEvent),
    ('{"at":1.5,"kind":"dropped","operator":"a","records":7,"time-out":3,"full":4}', DroppedEvent),
    ('{"at":1.5,"kind":"failed","error":"no"}', FailedEvent),
    (
        '{"at":1.5,"kind":"failed","operator":"a","error":"no","tries":2,"is_users":true,'
        '"topic":"in","first":3,"end":9}',
        FailedEvent,
    ),
    (
        '{"at":1.5,"kind":"restarting","operator":"a","tries":1,"delay_s":0.0,"since_s":0.0,'
        '"retry_for_s":null,"error":"gone"}',
        RestartingEvent,
    ),
    ('{"at":1.5,"kind":"revived","operator":"a","tries":1,"error":"gone"}', RevivedEvent),
    (
        '{"at":1.5,"kind":"rescaled","operator":"a","replicas":3,"before":2,"pause_s":1.5,'
        '"after_s":2.0}',
        RescaledEvent,
    ),
    (
        '{"at":1.5,"kind":"rescaled","operator":"a","replicas":3,"before":2,"state_rows":9,'
        '"pause_s":1.5,"hold_s":0.1,"wait_s":0.1,"stop_s":0.1,"repartition_s":0.1,'
        '"restart_s":0.1,"verify_s":0.1,"resume_s":0.1}',
        RescaledEvent,
    ),
    (
        '{"at":1.5,"kind":"executors","alive":1,"asked":3,"before":1,"why":"more-replicas"}',
        ExecutorsRequestedEvent,
    ),
    (
        '{"at":1.5,"kind":"executors","alive":1,"asked":3,"before":1,"why":"more-replicas",'
        '"needs":"words 3"}',
        ExecutorsRequestedEvent,
    ),
    (
        '{"at":1.5,"kind":"query-started","operator":"a","query_id":"7e5f","backlog":"offsets"}',
        QueryStartedEvent,
    ),
    ('{"at":1.5,"kind":"query-ended","operator":"a","error":""}', QueryEndedEvent),
    (
        '{"at":1.5,"kind":"executor-effect","operator":"a","before":1,"executors":3,'
        '"rows_per_s_before":300.0,"rows_per_s":900.0,"batches":10}',
        ExecutorEffectEvent,
    ),
    (
        '{"at":1.5,"kind":"verdict","operator":"a","culprit":"driver","evidence":"4 of 5 s",'
        '"advice":"list fewer files"}',
        VerdictEvent,
    ),
    (
        '{"at":1.5,"kind":"verdict","operator":"a","culprit":"sink","evidence":"2 -> 3",'
        '"advice":"scale it","unit":"partitions"}',
        VerdictEvent,
    ),
    (
        '{"at":1.5,"kind":"partitions-requested","operator":"a","before":2,"partitions":4}',
        PartitionsRequestedEvent,
    ),
    (
        '{"at":1.5,"kind":"partitions-changed","operator":"a","before":2,"partitions":4,'
        '"state_rows":9,"pause_s":3.5,"wait_s":0.5,"repartition_s":1.5,"restart_s":0.1,'
        '"verify_s":1.4}',
        PartitionsChangedEvent,
    ),
    (
        '{"at":1.5,"kind":"partitions-restored","operator":"a","partitions":2,"wanted":4,'
        '"pause_s":9.5,"error":"no batch was committed within 5 s"}',
        PartitionsRestoredEvent,
    ),
    ('{"at":1.5,"kind":"executors","alive":3,"asked":3,"after_s":4.5}', ExecutorsReadyEvent),
    ('{"at":1.5,"kind":"executors","alive":2,"asked":3,"why":"lost"}', ExecutorLostEvent),
    ('{"at":1.5,"kind":"teleported","operator":"a","to":["mars",{"x":1}]}', UnknownEvent),
    ('{"at":1.5,"kind":"running","operator":"a","replicas":"many"}', UnknownEvent),
    ('{"at":1.5,"kind":"gave-up","operator":"a","replicas":3}', UnknownEvent),
    ('{"at":1.5,"kind":"held","operator":"a","by":"b"}', None),
]


@pytest.mark.parametrize(("line", "event_class"), LINES)
def test_a_line_is_written_back_unchanged(line: str, event_class: type[Any] | None) -> None:
    event = event_from_json(json.loads(line))
    assert event_class is None or type(event) is event_class
    assert json.dumps(event_to_json(event), separators=(",", ":")) == line


@pytest.mark.parametrize("name", ["journal-v1.jsonl", "journal-spark-v1.jsonl"])
def test_every_recorded_event_is_known_and_written_back(name: str) -> None:
    lines = map(json.loads, (RECORDED / name).read_text().splitlines())
    recorded = [event for line in lines for event in line.get("events", ())]
    assert recorded
    for data in recorded:
        event = event_from_json(data)
        assert not isinstance(event, UnknownEvent) and not event.extra
        assert kind_of(event) == data["kind"]
        assert json.dumps(event_to_json(event)) == json.dumps(data)


def test_fields_have_the_keys_of_the_journal() -> None:
    event = ExecutorsReadyEvent(at=1.0, alive=3, requested=3, after_s=4.5)
    assert event_fields(event) == {"alive": 3, "asked": 3, "after_s": 4.5}


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ({"kind": "held"}, "events.at: missing"),
        ({"at": 1.0}, "events.kind: missing"),
        ({"at": "noon", "kind": "held"}, "events.at: has a wrong form"),
        ({"at": 1.0, "kind": "held", "operator": 7}, "events.operator: has a wrong form"),
    ],
)
def test_an_event_without_time_or_kind_is_refused(data: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        event_from_json(data)
