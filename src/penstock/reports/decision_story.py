"""One tick as plain data for pages: measures, formula, proposal, guards, result, and its effect."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from penstock.control.loop import Tick
from penstock.control.registry import policies
from penstock.core.decision import Step, Target
from penstock.core.numbers import pretty
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.events import RunningEvent
from penstock.errors import InputError
from penstock.reports.decision_text import LABEL, describe_placement
from penstock.reports.event_text import explain_change, explain_no_decision
from penstock.runs.journal_header import JournalHeader, policy_asked
from penstock.runs.journal_index import JournalIndex, read_tick

#: Ticks after a decision in which its effect is looked for.
MAX_EFFECT_TICKS = 40


def read_measures(header: JournalHeader) -> tuple[str, ...]:
    """Return what the policy of a run measures; nothing if it is a file.

    To look at the run of somebody else must not execute a file that its journal names.
    """
    try:
        policy = policies().get(policy_asked(header))
    except InputError:
        return ()
    return policy.measures if policy is not None else ()


def tell_tick(tick: Tick, measures: Sequence[str], operator: str = "") -> dict[str, Any]:
    """Return a tick: its decision about every operator or one, or why there is none."""
    decision, snapshot = tick.decision, tick.snapshot
    story: dict[str, Any] = {"at": tick.at, "applied": tick.applied, "error": tick.error}
    if decision is None:
        return story | {"policy": "", "why_not": explain_no_decision(tick), "targets": []}
    if decision.placement is not None:
        placement = decision.placement
        story["placement"] = {
            "text": describe_placement(placement),
            "formula": placement.why,
            "moves": [
                {"slice": move.slice, "from": move.source, "to": move.destination}
                for move in placement.moves
            ],
        }
    targets = [
        _tell_target(name, target, snapshot, measures)
        for name, target in decision.targets.items()
        if operator in ("", name)
    ]
    return story | {
        "policy": decision.policy,
        "is_change": decision.is_change,
        "plan": dict(tick.plan),
        "targets": targets,
    }


def _tell_target(
    name: str, target: Target, snapshot: Snapshot | None, measures: Sequence[str]
) -> dict[str, Any]:
    shown = snapshot.operators.get(name) if snapshot is not None else None
    return {
        "operator": name,
        "current": target.current,
        "wanted": target.wanted,
        "proposal": target.proposal,
        "reason": str(target.reason),
        "sentence": _sentence(target.reason),
        "proposal_reason": str(target.proposal_reason),
        "proposal_sentence": _sentence(target.proposal_reason),
        "summary": explain_change(target),
        "measured": list(_measured(shown, snapshot, measures)) if shown and snapshot else [],
        "formula": target.why.split("; ") if target.formula else [],
        "guards": [_tell_step(step) for step in target.steps],
        "expected_rate": _capacity(shown, target.wanted),
    }


def _tell_step(step: Step) -> dict[str, Any]:
    return {
        "guard": step.guard,
        "before": step.before,
        "after": step.after,
        "reason": str(step.reason),
        "sentence": _sentence(step.reason),
    }


def _measured(
    operator: OperatorSnapshot, snapshot: Snapshot, measures: Sequence[str]
) -> Iterator[str]:
    offered = snapshot.offered.get(operator.name)
    if offered is not None:
        yield f"offered {pretty(offered)} records/s"
    arrives = None if operator.is_source else snapshot.arrival_rate(operator.name)
    if arrives is not None:
        yield f"{pretty(arrives)} records/s arrive"
    for measure in measures or ("input_rate", "busy", "queue"):
        if measure in LABEL:
            yield LABEL[measure].format(pretty(getattr(operator, measure)))


def _sentence(reason: str) -> str:
    return reason.sentence if isinstance(reason, Reason) else ""


def _capacity(operator: OperatorSnapshot | None, replicas: int) -> float | None:
    capacity = operator.replica_capacity if operator is not None else None
    return None if capacity is None else float(f"{capacity * replicas:.6g}")


def tell_effect(index: JournalIndex, number: int, operator: str, wanted: int) -> dict[str, Any]:
    """Return what became of a change: seconds until it ran, and the capacity measured then.

    Only the next ticks are looked at; `ran_after_s` is None if the replicas did not run by then.
    """
    end = min(len(index), number + 1 + MAX_EFFECT_TICKS)
    start: float | None = None
    effect: dict[str, Any] = {"ran_after_s": None, "measured_rate": None}
    for place, data in enumerate(index.read(number, end)):
        tick = read_tick(data)
        if tick is None:
            continue
        start = tick.at if start is None else start
        if effect["ran_after_s"] is None:
            effect["ran_after_s"] = _ran_after_s(tick, operator, wanted, start, place > 0)
        elif tick.snapshot is not None:
            shown = tick.snapshot.operators.get(operator)
            if shown is not None and shown.parallelism == wanted:
                effect["measured_rate"] = _capacity(shown, wanted)
                break
        if place > 0 and operator in _changes(tick):
            break
    return effect


def _changes(tick: Tick) -> Mapping[str, int]:
    """Return what a tick requested: the changes of an applied decision."""
    return tick.decision.changes if tick.applied and tick.decision is not None else {}


def _ran_after_s(
    tick: Tick, operator: str, wanted: int, start: float, is_later: bool
) -> float | None:
    for event in tick.status.events:
        if not isinstance(event, RunningEvent) or event.at < start:
            continue
        if (event.operator, event.replicas) == (operator, wanted):
            return round(event.at - start, 3)
    if is_later and tick.status.running.get(operator) == wanted:
        return round(tick.at - start, 3)
    return None
