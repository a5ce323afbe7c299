"""What the model checker found: text, JSON, and tables for the documentation."""

import re
from collections.abc import Sequence
from typing import Any

from penstock.decentralized.checker.configuration import BUGS
from penstock.decentralized.checker.invariants import Invariant
from penstock.decentralized.checker.suite import CheckRun
from penstock.decentralized.checker.verdict import CheckVerdict
from penstock.reports.sequence_chart import describe_message, sequence_chart
from penstock.reports.tables import Table, as_markdown

BLOCK = "penstock decentralized check --all"


def check_text(run: CheckRun) -> str:
    """Return the verdict of one check for a terminal, with the trace of a violation."""
    verdict = run.verdict
    extent = "all states" if verdict.is_complete else "not all states"
    lines = [
        _configuration(verdict),
        f"{verdict.states:,} states, {verdict.steps:,} steps, depth {verdict.depth}, "
        f"{verdict.quiet_states} quiet ({extent}); {run.cpu_s:.1f} s CPU, {run.wall_s:.1f} s",
        "",
    ]
    violated = verdict.violation
    if violated is not None:
        lines += [f"VIOLATED: {violated.invariant.value}", violated.problem, ""]
        lines += [f"shortest trace, {len(verdict.trace)} steps:", *sequence_chart(verdict.trace)]
    elif verdict.is_complete:
        lines += [f"holds: {invariant.value}" for invariant in Invariant]
    else:
        lines += [f"no violation in the first {verdict.states:,} states; raise --max-states"]
    return "\n".join(lines)


def check_json(run: CheckRun) -> dict[str, Any]:
    """Return a check as JSON."""
    verdict, config = run.verdict, run.verdict.config
    return {
        "name": run.check.name,
        "bug": run.check.bug or None,
        "instances": list(config.instances),
        "max_instances": config.max_instances,
        "actions": config.actions,
        "records": config.records,
        "symmetry": config.has_symmetry,
        "partial_order": config.reduces_order,
        "states": verdict.states,
        "steps": verdict.steps,
        "depth": verdict.depth,
        "quiet_states": verdict.quiet_states,
        "complete": verdict.is_complete,
        "violation": _violation_json(verdict),
        "wall_s": round(run.wall_s, 3),
        "cpu_s": round(run.cpu_s, 3),
    }


def suite_tables(runs: Sequence[CheckRun]) -> list[Table]:
    """Return the checks of the corrected protocol, and the bugs that were found."""
    holds = [run for run in runs if not run.check.bug]
    bugs = [run for run in runs if run.check.bug]
    columns = ("check", "instances", "actions", "records", "states", "steps", "quiet", "CPU s")
    return [
        Table(columns=(*columns, "verdict"), rows=tuple(map(_hold_row, holds)), title="Corrected"),
        Table(
            columns=("bug", "left out", "violated", "states", "steps in trace", "CPU s"),
            rows=tuple(map(_bug_row, bugs)),
            title="One rule left out",
            words=3,
        ),
    ]


def replace_block(page: str, tables: Sequence[Table]) -> str:
    """Return a page with new tables between its markers, or at its end.

    >>> "old" in replace_block(f"<!-- {BLOCK} -->old<!-- end -->", [])
    False
    """
    body = "\n\n".join(as_markdown(table) for table in tables)
    block = f"<!-- {BLOCK} -->\n{body}\n<!-- end -->"
    pattern = rf"<!-- {BLOCK} -->.*?<!-- end -->"
    if re.search(pattern, page, re.DOTALL):
        return re.sub(pattern, lambda _: block, page, flags=re.DOTALL)
    return f"{page.rstrip()}\n\n{block}\n".lstrip()


def _configuration(verdict: CheckVerdict) -> str:
    config = verdict.config
    nodes = ", ".join(map(str, config.instances))
    reductions = [
        name
        for name, is_used in (
            ("symmetry", config.has_symmetry),
            ("partial order", config.reduces_order),
        )
        if is_used
    ]
    return (
        f"{len(config.instances)} operators with {nodes} nodes, "
        f"each at most {config.max_instances}; at once at most "
        f"{config.actions} actions and {config.records} records; "
        f"reductions: {', '.join(reductions) or 'none'}"
    )


def _violation_json(verdict: CheckVerdict) -> dict[str, Any] | None:
    if verdict.violation is None:
        return None
    return {
        "invariant": verdict.violation.invariant.name.lower(),
        "problem": verdict.violation.problem,
        "trace": [
            {
                "step": step.kind.value,
                "node": step.node,
                "peer": step.peer,
                "message": describe_message(step.message) if step.kind.value == "deliver" else None,
            }
            for step in verdict.trace
        ],
    }


def _hold_row(run: CheckRun) -> tuple[str, ...]:
    verdict, config = run.verdict, run.verdict.config
    nodes = f"{len(config.instances)} × 1 to {config.max_instances}"
    if verdict.violation is not None:
        outcome = f"violated: {verdict.violation.invariant.value}"
    else:
        outcome = "all hold" if verdict.is_complete else "not complete"
    return (
        run.check.name,
        nodes,
        str(config.actions),
        str(config.records),
        f"{verdict.states:,}",
        f"{verdict.steps:,}",
        str(verdict.quiet_states),
        f"{run.cpu_s:.1f}",
        outcome,
    )


def _bug_row(run: CheckRun) -> tuple[str, ...]:
    verdict = run.verdict
    violated = "not found" if verdict.violation is None else verdict.violation.invariant.value
    numbers = (f"{verdict.states:,}", str(len(verdict.trace)), f"{run.cpu_s:.1f}")
    return run.check.name, BUGS[run.check.bug].summary, violated, *numbers
