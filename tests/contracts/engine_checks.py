"""What every engine must do behind the port, simulated or real.

A check gets a maker of engines. Each engine runs the same pipeline, `first` and then `second`,
two replicas each of at most six; 100 records/s are offered, a replica takes 40, so that two are
too few and three are enough. Times are those of a simulator, which jumps; an engine that really
waits gets a part of them, its `pace`.

A check of `BEGINNING` needs an engine that has just been made. The others bring about what they
need, so that one engine may serve them all if engines take long to start.
"""

from collections.abc import Callable
from typing import Any, Protocol

import pytest

from penstock.core.decision import Move
from penstock.engines.events import RunningEvent
from penstock.engines.port import Engine, Plan
from penstock.errors import InputError, NotReadyError


class Make(Protocol):
    """Makes engines, each the same."""

    def __call__(self) -> "Paced":
        """Make one."""
        ...


class Paced:
    """An engine whose time goes at a pace: its seconds for each second of a check.

    A replica that works takes `work_rate` records/s.
    """

    def __init__(self, engine: Engine, pace: float = 1.0, work_rate: float = 40.0) -> None:
        self.engine, self.pace, self.work_rate = engine, pace, work_rate

    def advance(self, seconds: float) -> None:
        """Let a check's seconds pass."""
        self.engine.advance(seconds * self.pace)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.engine, name)


OFFERED_RATE = 100.0
REPLICA_RATE = 40.0
AT_MOST = 6
TWO = {"first": 2, "second": 2}
#: Seconds after which measures are those of the replicas that run.
WHILE_S = 60.0


def settled(engine: Paced, replicas: dict[str, int], within_s: float = 240.0) -> None:
    """Ask for replicas and wait until they run and can be observed."""
    engine.apply(Plan(replicas=replicas))
    wait_for(engine, replicas, within_s)


def wait_for(engine: Paced, replicas: dict[str, int], within_s: float = 240.0) -> None:
    """Wait until replicas run and can be observed."""
    waited = 0.0
    while waited < within_s:
        engine.advance(5)
        waited += 5
        running = engine.status().running
        if all(running[name] == k for name, k in replicas.items()) and _is_ready(engine):
            return
    raise AssertionError(f"{replicas} did not come about within {within_s} s")


def _is_ready(engine: Paced) -> bool:
    try:
        engine.observe()
    except NotReadyError:
        return False
    return True


def has_two(engine: Paced) -> None:
    """See to it that two replicas of each operator run and are what is measured."""
    status = engine.status()
    if not status.requested == status.running == TWO:
        settled(engine, TWO)
        engine.advance(WHILE_S)
    elif status.at < WHILE_S * engine.pace:
        engine.advance(WHILE_S - status.at / engine.pace)


def carried_rate(engine: Paced, name: str) -> float:
    """Records that an operator takes in a second of work.

    An engine that records its batches says how long its replicas worked; how much it gets done by
    the clock depends on what else the machine does. A simulator's clock is exact.
    """
    k = engine.status().running[name]
    engine.advance(WHILE_S)
    batches = [b for b in engine.status().batches.get(name, ()) if b.replicas == k and b.rows_in]
    if batches:
        return sum(b.rows_in for b in batches) / sum(b.longest_s for b in batches)
    rate = engine.observe().operators[name].input_rate
    assert rate is not None
    return rate


def check_nothing_can_be_observed_before_anything_happened(make: Make) -> None:
    with pytest.raises(NotReadyError):
        make().observe()


# --- looking on


def check_time_passes_as_the_harness_says(make: Make) -> None:
    engine = make()
    before = engine.status().at
    engine.advance(30)
    engine.advance(15)
    assert engine.status().at - before == pytest.approx(45 * engine.pace, abs=2)


def check_a_snapshot_shows_every_operator(make: Make) -> None:
    engine = make()
    has_two(engine)
    snapshot = engine.observe()
    assert list(snapshot.operators) == ["first", "second"]
    assert snapshot.operators["second"].upstream == ("first",)
    assert snapshot.offered["first"] == pytest.approx(OFFERED_RATE, rel=0.5)
    first = snapshot.operators["first"]
    assert first.parallelism == 2
    assert first.max_parallelism == AT_MOST
    assert first.input_rate is not None
    assert first.input_rate > 0
    assert first.busy is not None
    assert 0 < first.busy <= 1
    assert first.queue is not None
    assert first.queue > 0


def check_observing_twice_changes_nothing(make: Make) -> None:
    engine = make()
    has_two(engine)
    assert engine.observe() == engine.observe()


def check_a_plan_that_names_what_is_not_there_is_refused(make: Make) -> None:
    engine = make()
    has_two(engine)
    for plan in (
        Plan(replicas={"fist": 2}),
        Plan(replicas={"first": 0}),
        Plan(replicas={"first": AT_MOST + 1}),
    ):
        with pytest.raises(InputError):
            engine.apply(plan)
    assert engine.status().requested == TWO


def check_what_an_engine_cannot_do_is_refused(make: Make) -> None:
    engine = make()
    able = engine.capabilities
    assert able.pauses <= {"first", "second"}
    if not able.moves_slices:
        with pytest.raises(InputError):
            engine.apply(Plan(moves=(Move("s", "a", "b"),)))
    if not able.has_executors:
        with pytest.raises(InputError):
            engine.apply(Plan(executors=3))


def check_latency_is_told_once_by_path(make: Make) -> None:
    engine = make()
    has_two(engine)
    engine.advance(30)
    latency = engine.status().latency
    assert list(latency) == ["first > second"]
    assert latency["first > second"].count > 0
    assert latency["first > second"].mean > 0
    assert engine.status().latency == {}


def check_replica_seconds_add_up(make: Make) -> None:
    engine = make()
    has_two(engine)
    before = engine.status()
    engine.advance(30)
    after = engine.status()
    spent_s = after.replica_s["first"] - before.replica_s["first"]
    assert spent_s == pytest.approx(2 * (after.at - before.at), rel=0.1)


# --- changing


def check_more_replicas_carry_more(make: Make) -> None:
    engine = make()
    has_two(engine)
    before = carried_rate(engine, "second")
    settled(engine, {"first": 5, "second": 5})
    engine.advance(WHILE_S)
    assert carried_rate(engine, "second") > before * 1.1


def check_fewer_replicas_carry_less(make: Make) -> None:
    engine = make()
    settled(engine, {"first": 1})
    engine.advance(WHILE_S)
    assert carried_rate(engine, "first") == pytest.approx(engine.work_rate, rel=0.25)


def check_two_replicas_carry_twice_as_much_as_one(make: Make) -> None:
    engine = make()
    has_two(engine)
    assert carried_rate(engine, "first") == pytest.approx(2 * engine.work_rate, rel=0.25)


def check_no_record_is_lost_or_made(make: Make) -> None:
    engine = make()
    for k in (2, 4, 1, 3):
        settled(engine, {"first": k, "second": 4})
        status = engine.status()
        known = status.processed_records + status.dropped_records + status.backlog_records
        assert status.offered_records == known
    assert status.offered_records > 0


def check_requested_and_running_are_two_numbers(make: Make) -> None:
    engine = make()
    settled(engine, {"first": 1, "second": 2})
    engine.apply(Plan(replicas={"first": 4}))
    assert engine.status().requested == {"first": 4, "second": 2}
    wait_for(engine, {"first": 4})
    assert engine.status().running == {"first": 4, "second": 2}


def check_a_change_leaves_an_event(make: Make) -> None:
    engine = make()
    settled(engine, {"first": 2})
    engine.status()
    engine.apply(Plan(replicas={"first": 4}))
    for _ in range(48):
        engine.advance(5)
        events = engine.status().events
        if any(event.operator == "first" and isinstance(event, RunningEvent) for event in events):
            return
    raise AssertionError("four replicas never ran")


CHECKS: dict[str, Callable[[Make], None]] = {
    name.removeprefix("check_").replace("_", " "): check
    for name, check in list(globals().items())
    if name.startswith("check_")
}
#: Those that need an engine that has just been made, and all others.
_NEW = {check_nothing_can_be_observed_before_anything_happened}
BEGINNING = {name: check for name, check in CHECKS.items() if check in _NEW}
RUNNING = {name: check for name, check in CHECKS.items() if check not in _NEW}
