"""Describes events of runs that follow queries of another application."""

from penstock.core.numbers import pretty
from penstock.engines.query_events import (
    ExecutorEffectEvent,
    QueryEndedEvent,
    QueryStartedEvent,
    VerdictEvent,
)


def explain_query(
    event: QueryStartedEvent | QueryEndedEvent | ExecutorEffectEvent | VerdictEvent,
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
            verdict = f"more executors will not help: {event.culprit}"
            return f"{event.operator}: {verdict} ({event.evidence}); {event.advice}"


def _effect(event: ExecutorEffectEvent) -> str:
    factor = event.speed / event.speed_before if event.speed_before else 0.0
    speeds = f"{pretty(event.speed)} rows/s with {event.executors} executors"
    before = f"{pretty(event.speed_before)} with {event.before}"
    return f"{speeds}, {before}: {pretty(factor)} times as fast (after {event.batches} batches)"
