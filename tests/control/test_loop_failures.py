"""A policy that misbehaves changes nothing, and an engine in trouble is told of: the loop lives."""

import math
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.control.rig import AT_MOST, OPERATORS, SlowEngine, policy_of, wants

from penstock.control.decider import Decider
from penstock.control.execution import Patience
from penstock.control.limits import call_within
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.core.decision import Decision, Placement, Target
from penstock.core.guards import Guards
from penstock.core.snapshot import Snapshot
from penstock.engines.event_json import event_fields
from penstock.engines.events import FailedEvent
from penstock.errors import InputError, RescaleError
from penstock.runs.journal import JournalWriter, read_journal
from penstock.runs.tick_json import tick_to_json

Answer = Callable[[Snapshot], Any]
FOUR = LoopSchedule(duration_s=60.0, interval_s=15.0)


def run(answer: Answer, engine: SlowEngine | None = None, **options: Any) -> list[Tick]:
    engine = engine or SlowEngine()
    decider = Decider(policy_of(answer), guards=Guards(), **options)
    return list(run_loop(engine, decider, FOUR, clock=engine.clock))


def at_times(answers: dict[float, Answer], otherwise: Answer) -> Answer:
    return lambda now: answers.get(now.at, otherwise)(now)


def raising(error: BaseException) -> Answer:
    def answer(_now: Snapshot) -> Any:
        raise error

    return answer


class MuteError(Exception):
    """Cannot even be printed."""

    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (ZeroDivisionError("division by zero"), "made failed: ZeroDivisionError: division by zero"),
        (KeyError("work\nsecond line"), r"made failed: KeyError: 'work\nsecond line'"),
        (ValueError(), "made failed: ValueError"),
        (InputError("x", "is wrong", "do this"), "made failed: x: is wrong"),
        (RescaleError("odd"), "made failed: odd"),
        (MuteError(), "made failed: MuteError"),
    ],
)
def test_a_policy_that_raises_changes_nothing(error: Exception, told: str) -> None:
    engine = SlowEngine()
    ticks = run(at_times({30.0: raising(error)}, wants(work=3)), engine)
    assert [tick.at for tick in ticks] == [15, 30, 45, 60]
    assert ticks[1].error.startswith(told) and ticks[1].snapshot is not None
    assert ticks[1].decision is None and not ticks[1].applied and not ticks[1].plan
    assert engine.plans == [(15, {"work": 3})]
    assert [bool(tick.decision) for tick in ticks] == [True, False, True, True]


def nonsense(**changes: Any) -> Answer:
    return lambda now: replace(wants(work=3)(now), **changes)


def target(*args: Any, **more: Any) -> Answer:
    return nonsense(targets={"work": Target(*args, **more)})


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda _: None, "a NoneType, not a Decision"),
        (lambda _: {"work": 3}, "a dict, not a Decision"),
        (lambda _: 3, "an int, not a Decision"),
        (wants(work=0), "work: 0 wanted, which is below 1"),
        (wants(work=-2), "work: -2 wanted, which is below 1"),
        (target(1, math.nan, ""), "work: nan is a float, not a whole number"),
        (target(1, 3.0, ""), "work: 3.0 is a float, not a whole number"),
        (target(1, True, ""), "work: True is a bool, not a whole number"),
        (target(1, "3", ""), "work: '3' is a str, not a whole number"),
        (target(math.nan, 3, ""), "work: nan is a float, not a whole number"),
        (target(1, 3, None), "work: its reason is a NoneType, not text"),
        (target(1, 3, "", None), "work: its formula must be text, and its numbers a mapping"),
        (target(1, 3, "", "", 7), "work: its formula must be text, and its numbers a mapping"),
        (nonsense(targets={"wrok": Target(1, 3, "")}), "unknown operator 'wrok', did you mean"),
        (nonsense(targets={7: Target(1, 3, "")}), "unknown operator 7, known: read, work"),
        (nonsense(targets={"work": 3}), "work: an int, not a Target"),
        (nonsense(targets=[3]), "policy must be a name and targets a mapping"),
        (nonsense(policy=None), "policy must be a name and targets a mapping"),
        (nonsense(at=math.nan), "a decision for nan s, asked at 15 s"),
        (nonsense(at=None), "a decision for None s, asked at 15 s"),
        (nonsense(placement=3), "placement: an int, not a Placement"),
        (nonsense(placement=Placement(1, 0, "")), "placement: 0 wanted, which is below 1"),
        (nonsense(placement=Placement(1, 1, "", (3,))), "placement: not every move is a Move"),
    ],
)
def test_nonsense_changes_nothing(answer: Answer, told: str) -> None:
    engine = SlowEngine()
    ticks = run(at_times({60.0: wants(work=2)}, answer), engine)
    assert ticks[0].error.startswith(f"made answered nonsense: {told}")
    assert all(tick.error and tick.decision is None for tick in ticks[:3])
    assert engine.asked == [(60, {"work": 2})]


def test_more_than_an_operator_may_have_is_no_nonsense() -> None:
    engine = SlowEngine()
    run(wants(work=10**12), engine)
    assert engine.plans == [(15, {"work": AT_MOST})]


def test_a_mistake_of_the_user_that_shows_at_the_first_decision_is_raised() -> None:
    with pytest.raises(InputError, match="there is no operator 'mpa'"):
        run(raising(InputError("replicas", "there is no operator 'mpa'")))


def test_a_policy_that_takes_too_long_is_left_behind() -> None:
    asked, go_on = [], threading.Event()

    def slow(now: Snapshot) -> Decision:
        asked.append(now.at)
        if now.at == 15:
            assert go_on.wait(10)
        return wants(work=3)(now)

    engine = SlowEngine()
    decider = Decider(policy_of(slow), guards=Guards(), call=call_within(0.5))
    ticks = []
    for tick in run_loop(engine, decider, FOUR, clock=engine.clock):
        ticks.append(tick)
        if tick.at == 30:
            go_on.set()
            (worker,) = [t for t in threading.enumerate() if t.name == "policy"]
            assert worker.daemon
            worker.join(10)
    assert [tick.error for tick in ticks] == [
        "made failed: TimeoutError: no answer within 0.5 s",
        "made failed: TimeoutError: an earlier call is still running",
        "",
        "",
    ]
    assert asked == [15, 45, 60] and engine.plans == [(45, {"work": 3})]


def test_asked_with_a_limit_a_policy_answers_and_raises_as_it_does_without() -> None:
    for error, told in (
        (ValueError("no"), "made failed: ValueError: no"),
        (TimeoutError("mine"), "made failed: TimeoutError: mine"),
        (SystemExit(3), "made failed: SystemExit: 3"),
    ):
        answer = at_times({30.0: raising(error)}, wants(work=3))
        ticks = run(answer, call=call_within(5.0))
        assert ticks[1].error.startswith(told)
        assert [tick.applied for tick in ticks] == [True, False, False, False]
        assert [bool(tick.decision) for tick in ticks] == [True, False, True, True]


def test_what_an_engine_cannot_say_is_told_and_the_loop_goes_on() -> None:
    broken = {15.0: OSError("disk gone"), 30.0: RuntimeError(), -45.0: ValueError("no status")}
    ticks = run(wants(work=2), SlowEngine(broken=broken))
    assert [tick.error for tick in ticks] == ["OSError: disk gone", "RuntimeError", "", ""]
    assert [[event_fields(e)["error"] for e in tick.status.events] for tick in ticks] == [
        ["OSError: disk gone"], ["RuntimeError"], ["ValueError: no status"], [],
    ]  # fmt: skip
    assert ticks[2].applied and ticks[2].status.at == 45
    assert ticks[2].status.requested == {"read": 1, "work": 1}  # as far as was known
    assert ticks[3].status.requested == {"read": 1, "work": 2}


def test_an_operator_that_stopped_does_not_end_the_loop_but_an_engine_that_is_over_does() -> None:
    engine = SlowEngine(over_at=45.0)
    engine.events.append(FailedEvent(at=3.0, operator="work", error="oh"))
    ticks = run(wants(work=2), engine)
    assert [tick.at for tick in ticks] == [15, 30, 45]
    assert ticks[0].status.events[0].operator == "work" and ticks[0].applied
    assert [tick.status.is_over for tick in ticks] == [False, False, True]


def exits(_now: Snapshot) -> Decision:
    sys.exit(1)


#: What a policy may do, and whether that can be carried out.
good = st.builds(lambda r, w: (wants(read=r, work=w), True), *[st.integers(1, 12)] * 2)
bad = st.one_of(
    st.builds(lambda k: (wants(work=k), False), st.integers(-5, 0)),
    st.builds(lambda v: (target(1, v, ""), False), st.floats() | st.text() | st.none()),
    st.builds(lambda v: (lambda _: v, False), st.none() | st.integers() | st.text()),
    st.builds(lambda n: (nonsense(targets={n: Target(1, 2, "")}), False), st.text()),
    st.sampled_from([(raising(e), False) for e in (ValueError("x"), MuteError(), KeyError(3))]),
    st.just((exits, False)),
)
odd = st.sampled_from([
    (target(1, 2, "why", "{x}", {"x": np.float32(0.5), ("odd",): [math.inf, {1}]}), True),
    (target(1, 2, "why", "{x}", {"x": np.arange(3)}), True),
])  # fmt: skip
ticks_of_a_run = st.sets(st.sampled_from(range(13)), min_size=2)


@given(
    acts=st.lists(good | bad | odd, min_size=1, max_size=12),
    refused=ticks_of_a_run,
    stalled=ticks_of_a_run,
    unready=ticks_of_a_run,
    patience=st.sampled_from([None, Patience(deadline_s=20.0, first_pause_s=10.0)]),
)
def test_whatever_a_policy_does_the_loop_lives_and_the_journal_knows_what_was_carried_out(
    acts: list[tuple[Answer, bool]],
    refused: set[int],
    stalled: set[int],
    unready: set[int],
    patience: Patience | None,
) -> None:
    engine = SlowEngine(
        refuses=lambda at: RescaleError("full") if at / 15 in refused else None,
        stalls=lambda at: at / 15 in stalled,
        not_ready=[15.0 * n for n in unready],
    )
    script: Iterator[tuple[Answer, bool]] = iter(acts)
    sane: list[bool] = []

    def answer(now: Snapshot) -> Any:
        act, is_sane = next(script, (wants(), True))
        sane.append(is_sane)
        return act(now)

    schedule = LoopSchedule(duration_s=15.0 * len(acts), interval_s=15.0)
    decider = Decider(policy_of(answer), guards=Guards(), call=call_within(30.0))
    with TemporaryDirectory() as root:
        path = Path(root) / "journal.jsonl"
        ticks = []
        with JournalWriter(path, {"policy": "made"}) as journal:
            for tick in run_loop(engine, decider, schedule, clock=engine.clock, patience=patience):
                journal.write(tick)
                ticks.append(tick)
        read = read_journal(path).ticks
    assert [tick.at for tick in read] == [15.0 * (n + 1) for n in range(len(acts))]
    told = [tick for tick in read if tick.snapshot is not None]
    assert [tick.decision is not None for tick in told] == sane
    assert all(tick.error for tick in read if tick.decision is None)
    # what the engine took on is what stands in the journal, tick by tick
    for tick in read:
        taken = [replicas for at, replicas in engine.plans if at == tick.at]
        assert dict(tick.plan) == {name: k for plan in taken for name, k in plan.items()}
        assert tick.applied <= bool(tick.plan)
    for _, replicas in engine.asked:
        assert all(name in OPERATORS and 1 <= k <= AT_MOST for name, k in replicas.items())
    assert [tick_to_json(tick)["running"] for tick in ticks] == [
        tick_to_json(tick)["running"] for tick in read
    ]
