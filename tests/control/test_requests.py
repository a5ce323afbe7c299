"""Requests of people: they take effect at the next tick, are journaled, and bounds still hold."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import op, snap
from tests.fakes import ONE_MORE, FakeEngine

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.control.requests import ACTIONS, ControlRequest, ControlState, constrain
from penstock.core.decision import Decision, Target
from penstock.core.guards import Guards
from penstock.core.reasons import Reason
from penstock.engines.events import ControlEvent, FailedEvent
from penstock.errors import InputError
from penstock.runs.control_file import CONTROL, ControlFile, append_request
from penstock.runs.journal import JournalWriter, read_journal
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

counts = st.none() | st.integers(1, 20)


def ask(action: str, **fields: object) -> ControlRequest:
    return ControlRequest(action=action, who="ann", asked_at=1.0, **fields)  # type: ignore[arg-type]


@given(
    current=st.integers(1, 20),
    wanted=st.integers(1, 20),
    pin=counts,
    bounds=st.tuples(counts, counts),
    paused=st.booleans(),
    declared=st.tuples(counts, counts),
)
def test_the_last_word_is_a_persons_within_the_declared_bounds(
    current: int,
    wanted: int,
    pin: int | None,
    bounds: tuple[int | None, int | None],
    paused: bool,
    declared: tuple[int | None, int | None],
) -> None:
    low, high = sorted((declared[0] or 1, declared[1] or 20))
    asked = tuple(sorted((bounds[0] or 1, bounds[1] or 20)))
    current, wanted = min(max(current, low), high), min(max(wanted, low), high)
    shown = snap(op("map", current, min_parallelism=low, max_parallelism=high))
    state = ControlState(
        is_paused=paused, pins={} if pin is None else {"map": pin}, bounds={"map": asked}
    )
    proposal = Decision(0.0, "x", {"map": Target(current, wanted, Reason.FITS)})
    target = constrain(proposal, shown, state).targets["map"]
    assert target.proposal == wanted
    if paused:
        assert target.wanted == current
    elif pin is not None:
        assert target.wanted == min(max(pin, low), high)
    else:
        assert target.wanted == min(max(min(max(wanted, asked[0]), asked[1]), low), high)


def test_requests_add_up() -> None:
    state = ControlState()
    for request in (
        ask("pause"),
        ask("pin", operator="a", replicas=3),
        ask("pin", operator="b", replicas=2),
        ask("unpin", operator="a"),
        ask("bounds", operator="a", minimum=2),
        ask("bounds", operator="b", maximum=9),
        ask("bounds", operator="b"),
        ask("dry-run-on"),
        ask("resume"),
    ):
        state = state.after(request)
    assert state == ControlState(
        is_dry_run=True, pins={"b": 2}, bounds={"a": (2, None)}, is_paused=False
    )


@pytest.mark.parametrize(
    ("data", "field"),
    [
        ([], ""),
        ({"at": 1, "who": "a", "action": "stop"}, "action"),
        ({"at": 1, "who": "a", "action": "pin", "operator": "x"}, "replicas"),
        ({"at": 1, "who": "a", "action": "pin", "operator": "x", "replicas": 0}, "replicas"),
        ({"at": 1, "who": "a", "action": "pin", "operator": "x", "replicas": True}, "replicas"),
        ({"at": 1, "who": "a", "action": "pin", "replicas": 2}, "operator"),
        ({"at": 1, "who": "a", "action": "pause", "operator": "x"}, "operator"),
        ({"at": 1, "who": "a", "action": "pause", "replicas": 2}, "replicas"),
        ({"at": 1, "who": "", "action": "pause"}, "who"),
        ({"at": "now", "who": "a", "action": "pause"}, "at"),
        ({"at": 1, "who": "a" * 999, "action": "pause"}, "who"),
        ({"at": 1, "who": "a", "action": "bounds", "operator": "x", "minimum": 3, "maximum": 2},
         "minimum"),
        ({"at": 1, "who": "a", "action": "pause", "more": 1}, "more"),
    ],
)  # fmt: skip
def test_a_wrong_request_names_its_field(data: object, field: str) -> None:
    with pytest.raises(InputError) as caught:
        ControlRequest.from_json(data)
    assert caught.value.field == field


@given(
    st.builds(
        lambda action, who, at, number: ControlRequest(
            action=action,
            who=who,
            asked_at=at,
            operator="x" if action in ("pin", "unpin", "bounds") else "",
            replicas=number if action == "pin" else None,
            minimum=number if action == "bounds" else None,
        ),
        st.sampled_from(ACTIONS),
        st.text(min_size=1, max_size=9),
        st.floats(0, 2e9),
        st.integers(1, 9),
    )
)
def test_a_request_is_read_as_it_was_written(request: ControlRequest) -> None:
    assert ControlRequest.from_json(json.loads(json.dumps(request.to_json()))) == request


def run_ticks(
    run: Path, count: int, requests: dict[int, ControlRequest], **how: bool
) -> list[Tick]:
    """Run a loop with an engine that always wants one more; ask before some ticks."""
    controls, ticks = ControlFile(run), []
    engine = FakeEngine()
    schedule = LoopSchedule(duration_s=count * 15.0, interval_s=15.0)
    if 0 in requests:
        append_request(run, requests[0])
    decider = Decider(ONE_MORE, guards=Guards())
    for number, tick in enumerate(run_loop(engine, decider, schedule, controls=controls, **how), 1):
        ticks.append(tick)
        if number in requests:
            append_request(run, requests[number])
    return ticks


def test_requests_take_effect_at_the_next_tick_and_are_journaled(tmp_path: Path) -> None:
    ticks = run_ticks(
        tmp_path,
        8,
        {
            1: ask("pause"),
            3: ask("resume"),
            4: ask("pin", operator="map", replicas=9),
            5: ask("unpin", operator="map"),
            6: ask("dry-run-on"),
        },
    )
    assert [tick.status.running["map"] for tick in ticks] == [2, 2, 2, 3, 9, 10, 10, 10]
    assert [tick.decision.targets["map"].reason for tick in ticks[1:3]] == [Reason.PAUSED] * 2
    assert ticks[4].decision.targets["map"].steps[-1].guard == "pin"
    assert ticks[6].error == "dry run" and not ticks[6].applied
    events = [event for tick in ticks for event in tick.status.events]
    assert [(event.action, event.who, event.number) for event in events] == [
        *(("pause", "ann", 1), ("resume", "ann", 2), ("pin", "ann", 3), ("unpin", "ann", 4)),
        ("dry-run-on", "ann", 5),
    ]
    with JournalWriter(tmp_path / "journal.jsonl", {}) as journal:
        for tick in ticks:
            journal.write(tick)
    read = [e for t in read_journal(tmp_path / "journal.jsonl").ticks for e in t.status.events]
    assert read == events and isinstance(read[0], ControlEvent)


def test_a_dry_run_can_be_switched_off(tmp_path: Path) -> None:
    ticks = run_ticks(tmp_path, 4, {2: ask("dry-run-off")}, dry_run=True)
    assert [tick.applied for tick in ticks] == [False, False, True, True]


def test_a_damaged_line_is_an_event_and_the_next_request_counts(tmp_path: Path) -> None:
    path = tmp_path / CONTROL
    path.write_bytes(
        b'{"at": 1, "who": "a", "action": "dance"}\n' + b"\xff\n" + b"x" * 9000 + b"\n"
    )
    append_request(tmp_path, ask("pause"))
    with path.open("ab") as stream:
        stream.write(b'{"at": 2, "who": "a", "action": "resu')
    ticks = run_ticks(tmp_path, 6, {})
    errors = [e.error for t in ticks for e in t.status.events if isinstance(e, FailedEvent)]
    assert any("control.jsonl:1: action: is unknown: 'dance'" in error for error in errors)
    assert ticks[-1].decision.targets["map"].reason == Reason.PAUSED


def test_a_resumed_run_keeps_what_was_asked_and_journals_only_what_is_new(tmp_path: Path) -> None:
    for request in (ask("pause"), ask("pin", operator="map", replicas=4), ask("resume")):
        append_request(tmp_path, request)
    controls = ControlFile(tmp_path, journaled=2)
    assert controls.state == ControlState(is_paused=True, pins={"map": 4})
    assert [(number, r.action) for number, r in controls.read_new()] == [(3, "resume")]
    assert controls.read_new() == []


def test_a_simulated_pipeline_obeys_its_file(tmp_path: Path) -> None:
    prepared = prepare_simulation(SimulationSpec(minutes=20, guards={"cooldown_s": "off"}))
    append_request(tmp_path, ask("pin", operator="mapper", replicas=7))
    append_request(tmp_path, ask("bounds", operator="source", maximum=5))
    ticks = [
        *run_loop(
            prepared.engine(), prepared.decider(), prepared.schedule, controls=ControlFile(tmp_path)
        )
    ]
    assert ticks[-1].status.running["mapper"] == 7
    assert all(tick.status.requested["source"] <= 5 for tick in ticks)
    free = [*prepared.ticks()]
    assert max(tick.status.requested["source"] for tick in free) > 5
