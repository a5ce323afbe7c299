"""Decisions as text: measurements, formula, proposal, guards, result."""

from collections.abc import Iterable, Iterator, Sequence
from textwrap import fill

from penstock.core.decision import Decision, Placement, Step, Target
from penstock.core.numbers import pretty
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.reports.chain_text import describe_member, describe_slowest, members_of

#: Maximum width of the text.
WIDTH = 80

LABEL = {
    "input_rate": "takes {} records/s",
    "output_rate": "puts out {} records/s",
    "busy": "busy {}",
    "idle": "idle {}",
    "backpressured": "back-pressured {}",
    "cpu": "CPU {}",
    "queue": "queue {} records",
    "queue_growth": "queue grows by {} records/s",
    "input_buffer": "input buffer {} full",
    "service_time_s": "{} s a record",
    "service_scv": "service scv {}",
    "arrival_scv": "arrival scv {}",
}


def explain(
    decision: Decision, snapshot: Snapshot, measures: Sequence[str], *, guarded: bool
) -> str:
    """Return one decision with all details."""
    head = f"at {pretty(decision.at)} s, {decision.policy}"
    if decision.placement is not None:
        return "\n".join([head, *_explain_placement(decision.placement)])
    lines = [head]
    for name, target in decision.targets.items():
        op = snapshot.operators[name]
        lines.append(f"  {name}: {_verdict(target)} ({target.reason})")
        lines += _rows(_details(op, target, snapshot, measures, guarded=guarded))
    return "\n".join(lines)


def _verdict(target: Target) -> str:
    if target.wanted == target.current:
        return f"stays at {_replicas(target.current)}"
    return f"{target.current} -> {_replicas(target.wanted)}"


def _replicas(n: int) -> str:
    return f"{n} replica" if n == 1 else f"{n} replicas"


def _details(
    op: OperatorSnapshot,
    target: Target,
    snapshot: Snapshot,
    measures: Sequence[str],
    *,
    guarded: bool,
) -> Iterator[tuple[str, str]]:
    yield "measured", _measured(op, snapshot, measures)
    members = members_of(op)
    for number, member in enumerate(members):
        yield "" if number else "chain", describe_member(member)
    if slowest := describe_slowest(members):
        yield "slowest", slowest
    label = "formula"
    for part in target.why.split("; ") if target.formula else ():
        yield label, part
        label = ""
    if target.steps or guarded:
        because = _sentence(target.proposal_reason) or target.proposal_reason
        yield "proposal", f"{_replicas(target.proposal)}: {because}"
        for step in target.steps:
            yield "guard", _guard(step)
        if not target.steps:
            yield "guards", "changed nothing"
    because = _sentence(target.reason)
    yield "result", f"{_verdict(target)}{f': {because}' if because else ''}"


def _measured(op: OperatorSnapshot, snapshot: Snapshot, measures: Sequence[str]) -> str:
    parts = [f"{_replicas(op.parallelism)} running"]
    if op.max_parallelism is not None:
        parts[0] += f" (at most {op.max_parallelism})"
    offered = snapshot.offered.get(op.name)
    if offered is not None:
        parts.append(f"offered {pretty(offered)} records/s")
    elif op.is_source:
        parts.append("offered rate unknown")
    arrives = None if op.is_source else snapshot.arrival_rate(op.name)
    if arrives is not None:
        parts.append(f"{pretty(arrives)} records/s arrive")
    parts += [LABEL[m].format(pretty(getattr(op, m))) for m in measures if m in LABEL]
    return ", ".join(parts)


def _guard(step: Step) -> str:
    sentence = _sentence(step.reason)
    return f"{step.guard}: {step.before} -> {step.after} ({sentence or step.reason})"


def _sentence(reason: str) -> str:
    return reason.sentence if isinstance(reason, Reason) else ""


def describe_placement(placement: Placement) -> str:
    """Say in one line how hosts change and why."""
    reason = _sentence(placement.reason) or placement.reason
    return f"{_hosts(placement)}, {len(placement.moves)} slices move: {reason}"


def _hosts(placement: Placement) -> str:
    if placement.wanted == placement.current:
        return f"{placement.current} hosts stay"
    return f"{placement.current} -> {placement.wanted} hosts"


def _explain_placement(placement: Placement) -> list[str]:
    rows = [("measured", placement.why)]
    rows += [("move", f"{m.slice} from {m.source} to {m.destination}") for m in placement.moves]
    rows.append(("result", describe_placement(placement)))
    return [f"  {_hosts(placement)} ({placement.reason})", *_rows(rows)]


def _rows(rows: Iterable[tuple[str, str]]) -> list[str]:
    return [
        fill(f"{label:<9} {text}", WIDTH, initial_indent=" " * 4, subsequent_indent=" " * 14)
        for label, text in rows
    ]
