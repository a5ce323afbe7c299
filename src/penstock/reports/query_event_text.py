"""Describes events of runs that follow queries of another application."""

from penstock.core.numbers import pretty
from penstock.engines.query_events import (
    ExecutorEffectEvent,
    PartitionsChangedEvent,
    PartitionsRequestedEvent,
    PartitionsRestoredEvent,
    QueryEndedEvent,
    QueryStartedEvent,
    VerdictEvent,
)

_EXECUTORS = "executors"


def explain_query(
    event: QueryStartedEvent
    | QueryEndedEvent
    | ExecutorEffectEvent
    | VerdictEvent
    | PartitionsRequestedEvent
    | PartitionsChangedEvent
    | PartitionsRestoredEvent,
) -> str:
    """Describe an event of a query.

    >>> explain_query(ExecutorEffectEvent(at=9.0, operator="words", before=1, executors=3,
    ...     speed_before=300.0, speed=900.0, batches=10))
    'words: 900 rows/s with 3 executors, 300 with 1: 3 times as fast (after 10 batches)'
    """
    match event:
        case QueryStartedEvent():
            return f"{event.operator} is followed; backlog by {event.backlog}"
        case QueryEndedEvent():
            return f"{event.operator} ended" + (f": {event.error}" if event.error else "")
        case ExecutorEffectEvent():
            return f"{event.operator}: {_effect(event)}"
        case VerdictEvent():
            verdict = f"more {event.unit or _EXECUTORS} will not help: {event.culprit}"
            return f"{event.operator}: {verdict} ({event.evidence}); {event.advice}"
        case PartitionsRequestedEvent():
            return f"{event.operator} is stopped, to go from {event.before} to {_count(event)}"
        case PartitionsChangedEvent():
            return f"{event.operator}: {_change(event)}"
        case PartitionsRestoredEvent():
            restored = f"{event.operator} runs with {_count(event)} again"
            return f"{restored}, it did not with {event.wanted}: {event.error}"


def _effect(event: ExecutorEffectEvent) -> str:
    factor = event.speed / event.speed_before if event.speed_before else 0.0
    unit = event.unit or _EXECUTORS
    speeds = f"{pretty(event.speed)} rows/s with {event.executors} {unit}"
    before = f"{pretty(event.speed_before)} with {event.before}"
    return f"{speeds}, {before}: {pretty(factor)} times as fast (after {event.batches} batches)"


def _count(
    event: PartitionsRequestedEvent | PartitionsChangedEvent | PartitionsRestoredEvent,
) -> str:
    return f"{event.partitions} partition" + ("" if event.partitions == 1 else "s")


def _change(event: PartitionsChangedEvent) -> str:
    """Describe a change of partitions.

    >>> _change(PartitionsChangedEvent(at=0.0, operator="sum", partitions=3, before=2, pause_s=2.5,
    ...     state_rows=50, repartition_s=1.5, restart_s=0.1))
    'runs with 3 partitions, stopped for 2.5 s (repartition 1.5, restart 0.1), 50 rows of state'
    """
    steps = {
        "wait": event.wait_s,
        "repartition": event.repartition_s,
        "restart": event.restart_s,
        "verify": event.verify_s,
    }
    parts = ", ".join(f"{name} {pretty(s)}" for name, s in steps.items() if s is not None)
    stop = f"stopped for {pretty(event.pause_s)} s" + (f" ({parts})" if parts else "")
    rows = "" if event.state_rows is None else f", {pretty(event.state_rows)} rows of state"
    return f"runs with {_count(event)}, {stop}{rows}"
