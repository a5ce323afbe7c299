"""What happened between decisions, in words: what followed a change, and why there was none."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import groupby

from penstock.control.loop import Tick
from penstock.core.decision import Target
from penstock.core.executors import Why
from penstock.core.numbers import pretty
from penstock.core.reasons import Reason
from penstock.engines.port import Event
from penstock.reports.tables import align_rows
from penstock.reports.text_charts import clock
from penstock.reports.text_layout import hang

_SENTENCES = {str(why): why.sentence for why in Why}
_ASLEEP = "a cool-down, or the end: the policy was not asked"


def because(target: Target) -> str:
    """Why an operator gets another number: the policy's reason, and what guards made of it.

    >>> because(Target(5, 3, Reason.RATE_BELOW_CAPACITY))
    'rate-below-capacity: fewer replicas would carry what comes in'
    >>> because(Target(5, 3, Reason.RATE_BELOW_CAPACITY).guarded("step", 4, Reason.STEP_LIMITED))
    '3 by rate-below-capacity, 4 by step'
    """
    if target.steps:
        parts = [f"{target.proposal} by {target.proposal_reason}"]
        return ", ".join(parts + [f"{step.after} by {step.guard}" for step in target.steps])
    reason = target.reason
    return f"{reason}: {reason.sentence}" if isinstance(reason, Reason) else reason


def of_executors(event: Event) -> tuple[str, str]:
    """What became of executors, and why, or how long it took."""
    numbers = event.numbers
    if "after_s" in numbers:
        there = f"executors now {numbers['alive']}"
        return there, f"{pretty(numbers['after_s'])} s after they were asked for"
    if "before" not in numbers:
        return f"executors {numbers['alive']}", "one was lost, another is on its way"
    change = f"executors {numbers['before']} -> {numbers['asked']}"
    return change, f"{numbers['why']}: {_SENTENCES.get(numbers['why'], '')}"


def of_ingest(event: Event) -> str:
    """Whether an ingest keeps up with its source.

    >>> of_ingest(Event(at=9.0, kind="behind", operator="files", numbers={"backlog": 7.0,
    ...     "unit": "files"}))
    'files falls behind: 7 files wait, and ever more'
    """
    if event.kind == "caught-up":
        return f"{event.operator} has caught up with its source"
    waiting = f"{pretty(event.numbers['backlog'])} {event.numbers['unit']} wait"
    return f"{event.operator} falls behind: {waiting}, and ever more"


def of_late_rows(event: Event) -> str:
    """How many rows came after the watermark, and where they are.

    >>> of_late_rows(Event(at=9.0, kind="late", operator="minutes", numbers={"records": 3,
    ...     "total": 5, "kept_in": ""}))
    'minutes: 3 rows came too late (5 so far); they are only counted: late_to keeps them'
    """
    numbers = event.numbers
    more = f" ({pretty(numbers['total'])} so far)" if numbers["total"] > numbers["records"] else ""
    topic = numbers["kept_in"]
    kept = f"topic {topic} keeps them" if topic else "they are only counted: late_to keeps them"
    return f"{event.operator}: {pretty(numbers['records'])} rows came too late{more}; {kept}"


def silence(tick: Tick) -> str:
    """Why a tick has no decision."""
    return tick.error or _ASLEEP


def what_followed(ticks: Sequence[Tick], place: int, operator: str | None) -> Iterator[str]:
    """What was told after the change at one tick, in the order of time; drops added up.

    Place -1 stands for the beginning of the run.
    """
    events = _until_next_change(ticks, place)
    told = [event for event in events if operator in (None, event.operator) or not event.operator]
    lines = [*_running(told), *((event.at, sentence(event)) for event in told), *_drops(told)]
    for at, text in sorted(lines, key=lambda line: line[0]):
        if text:
            yield f"  {clock(at)}  {text}"


def _until_next_change(ticks: Sequence[Tick], place: int) -> list[Event]:
    """Events up to the next decision that is carried out.

    What takes effect at the instant of a decision stands at its own tick, but follows from it.
    """
    now, later = ticks[place : place + 1] if place >= 0 else (), ticks[place + 1 :]
    last = next((i for i, tick in enumerate(later) if tick.applied), len(later))
    events = [event for tick in now for event in tick.status.events if _at_once(event, tick)]
    for tick in later[: last + 1]:
        events += [event for event in tick.status.events if not _at_once(event, tick)]
    return events


def _at_once(event: Event, tick: Tick) -> bool:
    return tick.applied and event.kind == "running" and event.at == tick.at


def _running(events: Sequence[Event]) -> Iterator[tuple[float, str]]:
    """Operators that change at one instant share a line."""
    changes = [event for event in events if event.kind == "running"]
    for at, group in groupby(changes, key=lambda event: event.at):
        replicas = ", ".join(f"{event.operator} {event.numbers['replicas']}" for event in group)
        yield at, f"now running: {replicas}"


def sentence(event: Event) -> str:
    """Say what happened; empty for what is told elsewhere."""
    numbers = event.numbers
    match event.kind:
        case "running" | "dropped" | "step":
            return ""
        case "rescaled":
            steps = ("wait", "repartition", "restart")
            parts = ", ".join(f"{step} {pretty(numbers[f'{step}_s'])}" for step in steps)
            rows = f"{pretty(numbers['state_rows'])} rows of state"
            stop = f"stopped for {pretty(numbers['pause_s'])} s ({parts})"
            return f"{event.operator}: {rows} went to {numbers['replicas']} replicas, {stop}"
        case "resumed":
            return f"the pipeline goes on, {pretty(numbers['after_s'])} s after the decision"
        case "restart":
            return f"the pipeline restarts, which takes {pretty(numbers['pause_s'])} s"
        case "failed":
            return _failure(event)
        case "restarting":
            delay_s = numbers["delay_s"]
            when = f" in {delay_s:.0f} s" if delay_s >= 1 else ""
            try_number = f"restarting{when}, try {numbers['tries']}"
            return f"{event.operator}: {try_number}, because {numbers['error']}"
        case "slow-batch":
            return _slow(event)
        case "retried":
            again = f"{numbers['replicas']} replicas are asked for again, try {numbers['tries']}"
            return f"{event.operator}: {again}"
        case "gave-up":
            told = (
                f"{numbers['replicas']} replicas are given up, now {numbers['wanted']} are wanted"
            )
            return f"{event.operator}: {told}"
        case "held":
            return f"{event.operator} is held: what comes after it has too much to do"
        case "executors":
            return ", ".join(of_executors(event))
        case "behind" | "caught-up":
            return of_ingest(event)
        case "late":
            return of_late_rows(event)
        case "resumed-run":
            return "the run was resumed here"
        case "late-tick":
            return f"the loop is late; ticks left out: {numbers['missed']}"
    rest = ", ".join(f"{name} {pretty(value)}" for name, value in numbers.items())
    return " ".join(part for part in (event.kind, event.operator, rest) if part)


def _failure(event: Event) -> str:
    """What failed: the rows, and the last line of the traceback."""
    lines = str(event.numbers["error"]).strip().splitlines() or [""]
    if event.operator and lines[0].startswith(event.operator):
        return lines[0] if len(lines) == 1 else f"{lines[0]} {lines[-1].strip()}"
    return f"{event.operator or 'the engine'} failed: {event.numbers['error']}"


def _slow(event: Event) -> str:
    """A batch that takes much longer than usual.

    >>> numbers = {"batch": 7, "seconds": 12.3, "usual_s": 1.1, "topic": "in", "first": 3, "end": 9}
    >>> _slow(Event(at=0.0, kind="slow-batch", operator="enrich", numbers=numbers))
    'enrich: its batch has taken 12 s, usually 1.1 s; now at rows 3 to 8 of topic in'
    """
    numbers = event.numbers
    took = f"its batch has taken {numbers['seconds']:.0f} s, usually {pretty(numbers['usual_s'])} s"
    if "topic" not in numbers:
        return f"{event.operator}: {took}"
    first, last, topic = numbers["first"], numbers["end"] - 1, numbers["topic"]
    return f"{event.operator}: {took}; now at rows {first} to {last} of topic {topic}"


def _drops(events: Sequence[Event]) -> Iterator[tuple[float, str]]:
    """Each operator's losses by cause, told when the first record was lost."""
    lost: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for event in events:
        for cause, records in event.numbers.items() if event.kind == "dropped" else ():
            lost.setdefault((event.operator, cause), []).append((event.at, records))
    for (operator, cause), drops in lost.items():
        total = pretty(sum(records for _, records in drops))
        yield drops[0][0], f"{operator} loses {total} records ({cause})"


def why_not(ticks: Sequence[Tick], operators: Sequence[str]) -> Iterator[str]:
    """For each operator how many ticks left it as it was, and for what reason."""
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
            yield silence(tick)
            continue
        target = tick.decision.targets.get(operator)
        if target is None or target.wanted != target.current:
            continue
        held = f", held by {target.steps[-1].guard}" if target.steps else ""
        reason = target.proposal_reason
        sentence = reason.sentence if isinstance(reason, Reason) and not held else ""
        yield f"{reason}{held}{f': {sentence}' if sentence else ''}"
