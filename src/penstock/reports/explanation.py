"""Why a run changed its replicas, and why it did not, from its journal."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from penstock.control.execution import waiting_operators
from penstock.control.loop import Tick
from penstock.control.registry import find_policy
from penstock.core.decision import Target
from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import pretty
from penstock.engines.port import HOSTS
from penstock.errors import InputError, nearest
from penstock.reports.decision_text import describe_placement, explain
from penstock.reports.event_text import (
    explain_change,
    explain_no_decision,
    explain_unchanged,
    list_effects,
)
from penstock.reports.tables import align_rows
from penstock.reports.text_charts import clock, minutes
from penstock.runs.journal_header import policy_asked
from penstock.runs.run_directory import RunDirectory
from penstock.runs.tick_json import operators_of


def explain_run(
    run: RunDirectory, operator: str | None = None, at_s: float | None = None
) -> Iterator[str]:
    """Explain every change of a run, or with `at_s` the nearest tick; `operator` selects one."""
    ticks = run.journal.ticks
    if not ticks:
        raise InputError("", "the journal has no tick yet", where=str(run.directory))
    if operator is not None:
        _check_operator(operator, ticks)
        if operator == HOSTS:  # one decision is about all hosts
            operator = None
    if at_s is None:
        return _whole_run(run, operator)
    place = min(range(len(ticks)), key=lambda i: abs(ticks[i].at - at_s))
    return _one_tick(run, place, operator)


def _check_operator(name: str, ticks: Sequence[Tick]) -> None:
    known = operators_of(ticks)
    if name not in known:
        raise InputError("--operator", f"there is no operator {name!r}", nearest(name, known))


def _whole_run(run: RunDirectory, operator: str | None) -> Iterator[str]:
    ticks = run.journal.ticks
    changes = [i for i, tick in enumerate(ticks) if _changes(tick, operator)]
    done = sum(ticks[i].applied for i in changes)
    of = f" of {operator}" if operator else ""
    length = minutes(ticks[-1].at)
    policy = run.journal.run.get("policy", "a policy")
    yield f"{policy}: {done} changes{of} in {len(ticks)} ticks, {length}"
    if run.journal.begins_s:
        since = minutes(run.journal.begins_s)
        yield f"the journal of the first {since} was removed; result.json covers the whole run"
    if before := list(list_effects(ticks, -1, operator)):
        yield from ("", "before the first change", *before)
    for i in changes:
        yield ""
        yield f"at {pretty(ticks[i].at)} s ({clock(ticks[i].at)})"
        yield from _change(ticks[i], operator)
        if ticks[i].applied:
            yield from list_effects(ticks, i, operator)
    yield ""
    yield from explain_unchanged(ticks, [operator] if operator else operators_of(ticks))
    last = _last_decision(ticks, operator)
    if last is not None:
        yield ""
        yield f"the last decision, {_story(run, last, operator)}"


def _one_tick(run: RunDirectory, place: int, operator: str | None) -> Iterator[str]:
    ticks = run.journal.ticks
    tick = ticks[place]
    if _decides(tick, operator):
        yield _story(run, tick, operator)
        if tick.error:
            yield f"  not carried out: {tick.error}"
        if tick.applied:
            yield from list_effects(ticks, place, operator)
        return
    why = f"{operator} was not there" if tick.decision is not None else explain_no_decision(tick)
    yield f"at {pretty(tick.at)} s nothing was decided: {why}"
    before = _last_decision(ticks[:place], operator)
    if before is not None:
        yield ""
        yield f"the last decision before that, {_story(run, before, operator)}"


def _changes(tick: Tick, operator: str | None) -> bool:
    """Whether a tick has a change to tell; one in progress was told at the tick that began it."""
    if tick.decision is None:
        return False
    has_moves = operator is None and tick.decision.placement is not None
    return bool(_new_changes(tick, operator)) or (has_moves and tick.decision.is_change)


def _new_changes(tick: Tick, operator: str | None) -> dict[str, Target]:
    waiting = waiting_operators(tick.error)
    targets = tick.decision.targets if tick.decision is not None else {}
    return {
        name: target
        for name, target in targets.items()
        if target.wanted != target.current and operator in (None, name) and name not in waiting
    }


def _decides(tick: Tick, operator: str | None) -> bool:
    """Whether a tick has a decision about an operator, which may have been added later."""
    return tick.decision is not None and operator in (None, *tick.decision.targets)


def _last_decision(ticks: Sequence[Tick], operator: str | None) -> Tick | None:
    return next((tick for tick in reversed(ticks) if _decides(tick, operator)), None)


def _change(tick: Tick, operator: str | None) -> Iterator[str]:
    rows = [
        [name, f"{target.current} -> {target.wanted}", explain_change(target)]
        for name, target in _new_changes(tick, operator).items()
    ]
    if tick.decision is not None and tick.decision.placement is not None:
        yield f"  {describe_placement(tick.decision.placement)}"
    yield from (f"  {line}" for line in align_rows(rows, words=3))
    if tick.error and not waiting_operators(tick.error):
        yield f"  not carried out: {tick.error}"


def _story(run: RunDirectory, tick: Tick, operator: str | None) -> str:
    """Return all details of a decision."""
    decision, snapshot = tick.decision, tick.snapshot
    if decision is None or snapshot is None:
        return ""
    if operator is not None:
        decision = replace(decision, targets=FrozenDict({operator: decision.targets[operator]}))
    return explain(decision, snapshot, _measures(run), guarded=True)


def _measures(run: RunDirectory) -> tuple[str, ...]:
    """Return what the policy measures; nothing if its file no longer exists."""
    try:
        return find_policy(policy_asked(run.journal.run)).measures
    except InputError:
        return ()
