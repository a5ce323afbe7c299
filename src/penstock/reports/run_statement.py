"""What `penstock run` prints before it starts: the run, and the commands to manage it."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from penstock.core.numbers import pretty
from penstock.pipelines.chains import describe_chains
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.reports.chain_text import chain_text
from penstock.reports.progress import duration
from penstock.runs.record_counts import last_topics
from penstock.runs.run_directory import JOURNAL
from penstock.runs.spark_preparation import PreparedSparkRun

_LABEL, _WIDTH = 11, 80


def start_statement(
    prepared: PreparedSparkRun, directory: Path, *, available_now: bool = False
) -> list[str]:
    """Return the lines, at most 80 columns wide where names allow it."""
    pipeline = prepared.pipeline
    facts = {
        "sources": _sources(prepared),
        "operators": [_bounds(op) for op in pipeline.operators.values() if op.scales],
        "chains": [chain_text(**chain) for chain in describe_chains(pipeline)],
        "hosts": [str(pipeline.hosts)] if pipeline.hosts else [],
        "policy": [_policy(prepared)],
        "objective": [_objective(prepared)],
        "output": list(_outputs(pipeline, directory)),
        "directory": [f"{directory} ({JOURNAL}, spark.log)"],
        "status": [f"penstock status {directory}"],
        "stop": [f"Ctrl-C, or penstock stop {directory}"],
        "resume": [f"penstock run --resume {directory}"],
    }
    resumed = "resumed, " if (directory / JOURNAL).exists() else ""
    return [f"{pipeline.name}: {resumed}{_length(prepared, available_now)}", *_lines(facts)]


def _length(prepared: PreparedSparkRun, available_now: bool) -> str:
    if available_now:
        return "production mode, until the rows that are there now are processed"
    if prepared.load is not None:
        return f"{duration(prepared.duration_s)} of a workload, then the backlog is drained"
    if math.isfinite(prepared.duration_s):
        return f"production mode, for {duration(prepared.duration_s)}"
    return "production mode, until it is stopped"


def _sources(prepared: PreparedSparkRun) -> list[str]:
    pipeline = prepared.pipeline
    operators = pipeline.operators.values()
    ingests = [f"{op.name} -> {op.writes}{_time(op)}" for op in operators if not op.reads]
    others = [f"{t.name} (other processes)" for t in pipeline.declared.values() if t.external]
    load = f" ({prepared.workload})" if prepared.workload else ""
    return [*ingests, *others, *(f"{topic}{load}" for topic in pipeline.feeds)]


def _time(operator: Operator) -> str:
    return f" (event time {operator.options.time})" if operator.options.time else ""


def _bounds(operator: Operator) -> str:
    options = operator.options
    return f"{operator.name} {options.min_replicas}-{options.max_replicas}"


def _policy(prepared: PreparedSparkRun) -> str:
    dry = ", dry run: decisions are not applied" if prepared.spec.dry_run else ""
    alone = "" if prepared.spec.is_controlled else ", no controller: each replica decides alone"
    return f"{prepared.policy.name}{alone}, every {pretty(prepared.interval_s)} s{dry}"


def _objective(prepared: PreparedSparkRun) -> str:
    if prepared.objective_s is None:
        return "none: latency is only measured"
    return f"latency below {pretty(prepared.objective_s)} s"


def _outputs(pipeline: Pipeline, directory: Path) -> Iterator[str]:
    for operator in pipeline.operators.values():
        if operator.writes is None:
            yield f"{', '.join(operator.reads)} -> {operator.name} (egress)"
    for topic in last_topics(pipeline):
        yield f"penstock topics tail {directory / 'topics' / topic}"


def _lines(facts: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield one or more lines per fact, the label on the first one."""
    for label, parts in facts.items():
        line = ""
        for part in parts:
            joined = f"{line}, {part}" if line else part
            if line and len(joined) > _WIDTH - _LABEL - 2:
                yield f"  {label:<{_LABEL}}{line}"
                label, joined = "", part
            line = joined
        if line:
            yield f"  {label:<{_LABEL}}{line}"
