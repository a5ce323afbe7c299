"""The MAPE loop: one tick observes, decides, guards, rescales, and tells what happened."""

from collections.abc import Iterator
from dataclasses import dataclass

from penstock.control.decider import Decider
from penstock.core.decision import Decision
from penstock.core.snapshot import Snapshot
from penstock.engines.port import Engine, Plan, Status
from penstock.errors import NotReadyError, RescaleError


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """Everything about one tick: enough to redraw every picture and to replay the decision."""

    at: float
    status: Status
    #: None while the engine had nothing to show, or the loop slept through a cool-down.
    snapshot: Snapshot | None = None
    decision: Decision | None = None
    #: Whether the decision was carried out, or why it was not.
    applied: bool = False
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schedule:
    """How long a run lasts and how often the policy is asked."""

    duration_s: float
    interval_s: float
    #: Do not ask at all for this long after a change.
    sleep_s: float = 0.0


def run_loop(engine: Engine, decider: Decider, schedule: Schedule) -> Iterator[Tick]:
    """Run until the end, one tick after the other.

    Never raises for a pipeline that is merely restarting: such a tick has no snapshot.
    """
    at, asleep_until = 0.0, 0.0
    while at < schedule.duration_s - 1e-9:
        seconds = min(schedule.interval_s, schedule.duration_s - at)
        engine.advance(seconds)
        at += seconds
        if at < asleep_until - 1e-9:
            yield Tick(at=at, status=engine.status())
            continue
        tick = _tick(engine, decider, at)
        if tick.applied:
            asleep_until = at + schedule.sleep_s
        yield tick


def _tick(engine: Engine, decider: Decider, at: float) -> Tick:
    try:
        snapshot = engine.observe()  # Monitor
    except NotReadyError as error:
        return Tick(at=at, status=engine.status(), error=str(error))
    decision = decider.decide(snapshot)  # Analyse and Plan
    applied, error_text = False, ""
    if decision.is_change:
        try:
            engine.apply(_plan(decision))  # Execute
            decider.carried_out(decision)
            applied = True
        except RescaleError as error:
            error_text = str(error)
    return Tick(
        at=at,
        status=engine.status(),
        snapshot=snapshot,
        decision=decision,
        applied=applied,
        error=error_text,
    )


def _plan(decision: Decision) -> Plan:
    moves = decision.placement.moves if decision.placement else ()
    return Plan(replicas=decision.changes, moves=moves)
