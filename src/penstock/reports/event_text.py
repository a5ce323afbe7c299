"""Describes events and decisions of a run: effects of changes, and reasons for no change."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from penstock.control.execution import waiting_operators
from penstock.control.loop import Tick
from penstock.core.decision import Target
from penstock.core.executors import ExecutorReason
from penstock.core.numbers import pretty
from penstock.core.reasons import Reason
from penstock.engines.events import (
    BehindEvent,
    CaughtUpEvent,
    ControlEvent,
    DroppedEvent,
    Event,
    ExecutorLostEvent,
    ExecutorsReadyEvent,
    ExecutorsRequestedEvent,
    FailedEvent,
    GaveUpEvent,
    HeldEvent,
    LateEvent,
    LateTickEvent,
    RescaledEvent,
    RestartEvent,
    RestartingEvent,
    ResumedEvent,
    ResumedRunEvent,
    RetriedEvent,
    RevivedEvent,
    RunningEvent,
    SlowBatchEvent,
    StepEvent,
    UnknownEvent,
)
from penstock.engines.query_events import QueryEvent
from penstock.reports.query_event_text import explain_query
from penstock.reports.tables import align_rows
from penstock.reports.text_charts import clock
from penstock.reports.text_layout import hang

_SENTENCES = {str(why): why.sentence for why in ExecutorReason}
_WAITS = "an earlier change is in progress"
_NOT_CALLED = "cool-down or end of the run: the policy was not called"


def explain_change(target: Target) -> str:
    """Return why replicas of an operator change: the reason of the policy, the steps of guards.

    >>> explain_change(Target(5, 3, Reason.RATE_BELOW_CAPACITY))
    'rate-below-capacity: fewer replicas would carry what comes in'
    >>> target = Target(5, 3, Reason.RATE_BELOW_CAPACITY)
    >>> explain_change(target.guarded("step", 4, Reason.STEP_LIMITED))
    'wanted 3 (rate-below-capacity), then 4 by step'
    """
    if target.steps:
        parts = [f"wanted {target.proposal} ({target.proposal_reason})"]
        return ", ".join(parts + [f"then {step.after} by {step.guard}" for step in target.steps])
    reason = target.reason
    return f"{reason}: {reason.sentence}" if isinstance(reason, Reason) else reason


def explain_executors(
    event: ExecutorsRequestedEvent | ExecutorsReadyEvent | ExecutorLostEvent,
) -> tuple[str, str]:
    """Return the change of executors, and its reason or duration."""
    match event:
        case ExecutorsReadyEvent():
            change = f"executors now {event.alive}"
            return change, f"{pretty(event.after_s)} s after the request"
        case ExecutorLostEvent():
            return f"executors {event.alive}", "one was lost, Spark starts another"
        case ExecutorsRequestedEvent():
            change = f"executors {event.before} -> {event.requested}"
            needs = f" (needed: {event.needs})" if event.needs else ""
            return change, f"{event.reason}: {_SENTENCES.get(event.reason, '')}{needs}"


def explain_ingest(event: BehindEvent | CaughtUpEvent) -> str:
    """Return whether an ingest keeps up with its source.

    >>> explain_ingest(BehindEvent(at=9.0, operator="files", backlog=7.0, unit="files"))
    'files falls behind: 7 files wait, and the backlog grows'
    """
    if isinstance(event, CaughtUpEvent):
        return f"{event.operator} has caught up with its source"
    waiting = f"{pretty(event.backlog)} {event.unit} wait"
    return f"{event.operator} falls behind: {waiting}, and the backlog grows"


def explain_late_rows(event: LateEvent) -> str:
    """Return how many rows came after the watermark, and where they are stored.

    >>> explain_late_rows(LateEvent(at=9.0, operator="minutes", records=3, total=5))
    'minutes: 3 rows came too late (5 so far); they are only counted: late_to keeps them'
    """
    more = f" ({pretty(event.total)} so far)" if event.total > event.records else ""
    topic = event.late_topic
    kept = f"topic {topic} keeps them" if topic else "they are only counted: late_to keeps them"
    return f"{event.operator}: {pretty(event.records)} rows came too late{more}; {kept}"


def explain_control(event: ControlEvent) -> str:
    """Return what a person asked of the loop.

    >>> explain_control(ControlEvent(at=9.0, operator="map", action="pin", who="ann", asked_at=0.0,
    ...     number=1, replicas=4))
    'ann pinned map to 4 replicas'
    """
    match event.action:
        case "pin":
            return f"{event.who} pinned {event.operator} to {event.replicas} replicas"
        case "unpin":
            return f"{event.who} released {event.operator}"
        case "bounds":
            if event.minimum is None and event.maximum is None:
                return f"{event.who} removed the bounds of {event.operator}"
            low, high = event.minimum or 1, event.maximum or "any number of"
            return f"{event.who} bounded {event.operator} to {low} to {high} replicas"
    words = {
        "pause": "paused scaling",
        "resume": "resumed scaling",
        "dry-run-on": "switched dry run on: decisions are not applied",
        "dry-run-off": "switched dry run off: decisions are applied",
    }
    return f"{event.who} {words.get(event.action, event.action)}"


def explain_no_decision(tick: Tick) -> str:
    """Return why a tick has no decision."""
    return tick.error or _NOT_CALLED


def list_effects(ticks: Sequence[Tick], place: int, operator: str | None) -> Iterator[str]:
    """List the events between the change at one tick and the next change, oldest first.

    Dropped records are summed up. Place -1 is the beginning of the run.
    """
    events = _until_next_change(ticks, place)
    shown = [event for event in events if operator in (None, event.operator) or not event.operator]
    sentences = [(event.at, describe_event(event)) for event in shown]
    lines = [*_running(shown), *sentences, *_drops(shown)]
    for at, text in sorted(lines, key=lambda line: line[0]):
        if text:
            yield f"  {clock(at)}  {text}"


def _until_next_change(ticks: Sequence[Tick], place: int) -> list[Event]:
    """Events up to the next decision that is applied, by their own time: reports may be late.

    A change that takes effect at the time of its decision belongs to that decision.
    """
    begin = ticks[place].at if place >= 0 else -math.inf
    end = next((tick.at for tick in ticks[place + 1 :] if tick.applied), math.inf)
    events = (event for tick in ticks[max(0, place) :] for event in tick.status.events)
    return [event for event in events if _is_between(event, begin, end)]


def _is_between(event: Event, begin: float, end: float) -> bool:
    if isinstance(event, RunningEvent):
        return begin <= event.at < end
    return begin < event.at <= end


def _running(events: Sequence[Event]) -> Iterator[tuple[float, str]]:
    """Yield a line per time; operators that change together share one."""
    changes = [event for event in events if isinstance(event, RunningEvent)]
    for at, group in groupby(changes, key=lambda event: event.at):
        replicas = ", ".join(f"{event.operator} {event.replicas}" for event in group)
        yield at, f"now running: {replicas}"


def describe_event(event: Event) -> str:
    """Describe an event; empty for events that other lines report."""
    match event:
        case RunningEvent() | DroppedEvent() | StepEvent():
            return ""
        case ResumedEvent():
            return f"the pipeline works again, {pretty(event.after_s)} s after the decision"
        case RestartEvent():
            return f"the pipeline restarts, which takes {pretty(event.pause_s)} s"
        case ExecutorsRequestedEvent() | ExecutorsReadyEvent() | ExecutorLostEvent():
            return ", ".join(explain_executors(event))
        case ResumedRunEvent():
            return "the run was resumed here"
        case LateTickEvent():
            return f"the loop is late; skipped ticks: {event.missed_ticks}"
        case UnknownEvent():
            rest = ", ".join(f"{name} {pretty(value)}" for name, value in event.extra.items())
            return " ".join(part for part in (event.kind, event.operator, rest) if part)
        case FailedEvent():
            return _failure(event)
        case BehindEvent() | CaughtUpEvent():
            return explain_ingest(event)
        case LateEvent():
            return explain_late_rows(event)
        case ControlEvent():
            return explain_control(event)
        case QueryEvent():
            return explain_query(event)
        case HeldEvent():
            return f"{event.operator} waits: the operators behind it are too slow (back-pressure)"
        case _:
            return f"{event.operator}: {_operator_change(event)}"


def _operator_change(
    event: RescaledEvent
    | RestartingEvent
    | RevivedEvent
    | SlowBatchEvent
    | RetriedEvent
    | GaveUpEvent,
) -> str:
    match event:
        case RescaledEvent():
            return _rescale(event)
        case RestartingEvent():
            when = f" in {event.delay_s:.0f} s" if event.delay_s >= 1 else ""
            return f"restarting{when}, try {event.tries}, because {event.error}"
        case RevivedEvent():
            return f"restarted, because {event.error}" if event.error else "restarted"
        case SlowBatchEvent():
            return _slow(event)
        case RetriedEvent():
            return f"{event.replicas} replicas are requested again, try {event.tries}"
        case GaveUpEvent():
            return f"{event.replicas} replicas are no longer requested, {event.wanted} are wanted"


def _rescale(event: RescaledEvent) -> str:
    """Describe a change that stopped an operator; simulators report neither rows nor steps.

    >>> _rescale(RescaledEvent(at=0.0, operator="sum", replicas=3, before=2, pause_s=2.5))
    'state went to 3 replicas, stopped for 2.5 s'
    """
    steps = {
        "wait": event.wait_s,
        "repartition": event.repartition_s,
        "restart": event.restart_s,
    }
    parts = ", ".join(f"{name} {pretty(s)}" for name, s in steps.items() if s is not None)
    rows = "state" if event.state_rows is None else f"{pretty(event.state_rows)} rows of state"
    stop = f"stopped for {pretty(event.pause_s)} s" + (f" ({parts})" if parts else "")
    return f"{rows} went to {event.replicas} replicas, {stop}"


def _failure(event: FailedEvent) -> str:
    """Return the failed rows, and the last line of the traceback."""
    lines = event.error.strip().splitlines() or [""]
    if event.operator and lines[0].startswith(event.operator):
        return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1].strip()}"
    return f"{event.operator or 'the engine'} failed: {event.error}"


def _slow(event: SlowBatchEvent) -> str:
    """Describe a batch that takes much longer than usual.

    >>> _slow(SlowBatchEvent(at=0.0, operator="enrich", batch=7, duration_s=12.3, usual_s=1.1,
    ...     topic="in", first_offset=3, end_offset=9))
    'its batch has taken 12 s, usually 1.1 s; now at rows 3 to 8 of topic in'
    """
    took = f"its batch has taken {event.duration_s:.0f} s, usually {pretty(event.usual_s)} s"
    if event.topic is None or event.end_offset is None:
        return took
    return (
        f"{took}; now at rows {event.first_offset} to {event.end_offset - 1} of topic {event.topic}"
    )


def _drops(events: Sequence[Event]) -> Iterator[tuple[float, str]]:
    """Yield the lost records of each operator by cause, at the time of the first one."""
    lost: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for event in events:
        for cause, records in event.causes.items() if isinstance(event, DroppedEvent) else ():
            lost.setdefault((event.operator, cause), []).append((event.at, records))
    for (operator, cause), drops in lost.items():
        total = pretty(sum(records for _, records in drops))
        yield drops[0][0], f"{operator} loses {total} records ({cause})"


def explain_unchanged(ticks: Sequence[Tick], operators: Sequence[str]) -> Iterator[str]:
    """Yield, for each operator, the number of ticks without a change, by reason."""
    counts = {name: Counter(_reasons(ticks, name)) for name in operators}
    reasons = sorted(
        {reason for counter in counts.values() for reason in counter},
        key=lambda reason: (-sum(counter[reason] for counter in counts.values()), reason),
    )
    if not reasons:
        return
    yield "why not at the other ticks:"
    rows = [[f"{n:,}" for n in (counts[name][reason] for name in operators)] for reason in reasons]
    for line, text in zip(align_rows([operators, *rows], words=0), ["", *reasons], strict=True):
        yield hang(f"  {line} ", text, len(line) + 4)


def _reasons(ticks: Sequence[Tick], operator: str) -> Iterator[str]:
    for tick in ticks:
        if tick.decision is None:
            yield explain_no_decision(tick)
            continue
        target = tick.decision.targets.get(operator)
        if target is None:
            continue
        if target.wanted != target.current:
            if operator in waiting_operators(tick.error):
                yield _WAITS
            continue
        held = f", held by {target.steps[-1].guard}" if target.steps else ""
        reason = target.proposal_reason
        sentence = reason.sentence if isinstance(reason, Reason) and not held else ""
        yield f"{reason}{held}{f': {sentence}' if sentence else ''}"
