"""Gathers what verdicts about a query need. Pure."""

from itertools import islice

from penstock.engines.attached.query_tracker import QueryTracker
from penstock.engines.attached.verdicts import QueryFacts
from penstock.engines.query_events import ExecutorEffectEvent

#: Batches that a verdict looks back on.
_BATCHES = 10
#: A query is behind if batches take longer than this share of the time that they may take.
_MAX_SHARE = 0.9


def gather_facts(
    tracker: QueryTracker,
    *,
    effect: ExecutorEffectEvent | None = None,
    idle_executors: int = 0,
    locality_wait_s: float | None = None,
) -> QueryFacts:
    """Return the facts about the last batches of a query."""
    since = max(0, len(tracker.progress) - _BATCHES)
    return QueryFacts(
        progress=tuple(islice(tracker.progress, since, None)),
        tasks=tuple(islice(tracker.facts, max(0, len(tracker.facts) - _BATCHES), None)),
        executors=tracker.executors,
        cores=tracker.cores,
        backlog_rows=float(tracker.waiting) if tracker.has_backlog else None,
        is_behind=is_behind(tracker),
        effect=effect,
        idle_executors=idle_executors,
        locality_wait_s=locality_wait_s,
        unit=tracker.unit,
    )


def is_behind(tracker: QueryTracker) -> bool:
    """Whether batches take longer than they may, or more waits than one of them reads."""
    usual_s = tracker.usual_batch_s
    if usual_s is not None and usual_s > _MAX_SHARE * tracker.batch_s:
        return True
    if not tracker.has_backlog or not tracker.operator.records:
        return False
    return tracker.waiting > tracker.operator.records[-1].rows_in
