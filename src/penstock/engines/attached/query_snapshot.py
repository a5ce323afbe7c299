"""Builds the snapshot of a query that another application has started. Pure."""

from dataclasses import replace
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import ceil
from penstock.core.snapshot import OperatorSnapshot
from penstock.engines.attached.query_tracker import JUDGED_AFTER, QueryTracker
from penstock.engines.attached.task_facts import find_typical
from penstock.engines.attached.verdicts import ScalingVerdict
from penstock.engines.microbatch.operator_snapshot import OperatorWindow, build_operator_snapshot

#: The slowest task says something about parallelism if it takes this share of a batch's work.
_MIN_SHARE = 0.5


def build_query_snapshot(
    tracker: QueryTracker,
    now: float,
    *,
    is_working: bool = True,
    verdicts: tuple[ScalingVerdict, ...] = (),
) -> OperatorSnapshot:
    """Return what was measured over the last window; `is_working` if a batch of the query runs.

    A batch that runs far longer than usual reports nothing until its end. Then rates are those
    before it, the query is busy, and rows keep arriving at the rate so far.
    """
    silent_s = tracker.silent_s(now) if is_working else 0.0
    begin = now - tracker.look_back_s(now, is_working=is_working)
    window = tracker.operator.window(now, begin)
    shown = build_operator_snapshot(_before_silence(window) if silent_s else window)
    measures: dict[str, Any] = {
        "output_rate": None,  # Spark does not report it for most sinks
        "useful_parallelism": find_useful_executors(tracker, verdicts),
        "extra": FrozenDict({**shown.extra, **_build_extra(tracker, shown, silent_s, verdicts)}),
    }
    if not tracker.has_backlog:
        measures |= {"queue": _estimate_queue(tracker), "queue_growth": None}
    if silent_s:
        measures |= {"busy": 1.0, "idle": 0.0}
    if tracker.probation is not None:
        # cold executors: what is measured now says nothing about the time after
        measures |= dict.fromkeys(("busy", "idle", "cpu", "service_time_s", "service_scv"))
    return replace(shown, **measures)


def _estimate_queue(tracker: QueryTracker) -> float | None:
    """Return the rows that arrive while batches take longer than they may; None if none do.

    It stands in for a backlog that the sources do not report.
    """
    delay_s, rate = tracker.trigger_delay_s, tracker.offered_rate
    return delay_s * rate if delay_s and rate is not None else None


def _before_silence(window: OperatorWindow) -> OperatorWindow:
    """Return the window up to the last batch."""
    last = window.records[-1].committed_at
    return replace(window, now=last, begin=min(window.begin, last - (window.now - window.begin)))


def find_useful_executors(
    tracker: QueryTracker, verdicts: tuple[ScalingVerdict, ...]
) -> int | None:
    """Return how many executors shorten a batch; None if nothing is known against more."""
    if verdicts:
        return tracker.executors
    if tracker.slots is not None:  # more partitions than slots run one after the other
        return tracker.slots
    facts = find_typical(tracker.facts)
    slots = facts.useful_slots() if facts is not None else None
    if facts is None or slots is None or not tracker.progress:
        return None
    heaviest, work_s = facts.heaviest, tracker.progress[-1].work_s or 0.0
    if heaviest is None or heaviest.longest_s < _MIN_SHARE * work_s:
        return None
    return ceil(slots / tracker.cores)


def _build_extra(
    tracker: QueryTracker,
    shown: OperatorSnapshot,
    silent_s: float,
    verdicts: tuple[ScalingVerdict, ...],
) -> dict[str, object]:
    """Return figures for people."""
    extra: dict[str, object] = {"backlog": describe_backlog(tracker), "allowed_s": tracker.batch_s}
    if shown.queue is not None and (rate := tracker.offered_rate):
        extra["backlog_s"] = round(shown.queue / rate, 3)
    if (usual_s := tracker.usual_batch_s) is not None:
        extra["batch_share"] = round(usual_s / tracker.batch_s, 3)
    if not tracker.has_backlog:
        extra["trigger_delay_s"] = round(tracker.trigger_delay_s, 3)
    if tracker.state is not None:
        extra["state_rows"] = tracker.state.rows
        extra["state_bytes"] = tracker.state.memory_bytes
    if silent_s:
        extra["silent_s"] = round(silent_s, 1)
    if tracker.probation is not None:
        extra["judged"] = f"{tracker.probation.batches} of {JUDGED_AFTER} batches"
    facts = find_typical(tracker.facts)
    heaviest = facts.heaviest if facts is not None else None
    if heaviest is not None:
        extra["tasks"] = heaviest.tasks
        if heaviest.median_s > 0:
            extra["skew"] = round(heaviest.longest_s / heaviest.median_s, 2)
    if verdicts:
        extra["verdicts"] = tuple(str(verdict.culprit) for verdict in verdicts)
    return extra


def describe_backlog(tracker: QueryTracker) -> str:
    """Say how the backlog is known."""
    if not tracker.sources:
        return "nothing yet"
    if tracker.has_backlog:
        return ", ".join(dict.fromkeys(source.unit for source in tracker.sources))
    return "trigger delay: a source does not report what waits"
