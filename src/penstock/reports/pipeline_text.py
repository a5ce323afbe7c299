"""A pipeline as text and JSON: its graph, and the changes against a run."""

import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from penstock.core.topology import Topology
from penstock.pipelines.changes import PipelineChange
from penstock.pipelines.description import describe
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.schema import schema_text

_WIDTH = 80


def is_accepted(change: PipelineChange, allowed: Sequence[str]) -> bool:
    """Whether a start accepts the change; removals must be allowed by name."""
    return change.is_compatible or (bool(change.removed) and change.removed in allowed)


def graph_text(pipeline: Pipeline) -> Iterator[str]:
    """Yield operators with their bounds and topics with their columns."""
    objective_s = pipeline.objective_s
    objective = f", latency below {objective_s:g} s" if objective_s is not None else ""
    yield f"{pipeline.name}: valid{objective}"
    if pipeline.hosts is not None:
        yield f"hosts: {pipeline.hosts}"
    yield "operators"
    for operator in pipeline.operators.values():
        yield from _wrapped(f"{operator.name}: {_operator_text(operator)}")
    yield "topics"
    for topic in pipeline.topics.values():
        columns = "columns set at start" if topic.schema is None else schema_text(topic.schema)
        yield from _wrapped(f"{topic.name}: {columns}; {_topic_source(pipeline, topic.name)}")


def _operator_text(operator: Operator) -> str:
    options = operator.options
    route = (
        f"{', '.join(operator.reads) or 'outside'} -> {', '.join(operator.outputs) or 'outside'}"
    )
    bounds = f", {options.min_replicas} to {options.max_replicas} replicas"
    state = f", {operator.slicing.slices} slices" if operator.slicing else ""
    return f"{operator.kind}, {route}{state}{bounds if operator.scales else ''}"


def _topic_source(pipeline: Pipeline, topic: str) -> str:
    if topic in pipeline.feeds:
        return "from the workload"
    writers = [op.name for op in pipeline.operators.values() if topic in op.fills]
    return f"from {writers[0]}" if writers else "from another process"


def changes_text(
    changes: Sequence[PipelineChange] | None, run: Path | None, allowed: Sequence[str]
) -> Iterator[str]:
    """Yield each change against a run with its verdict and a hint."""
    if changes is None:
        return
    yield ""
    if not changes:
        yield f"{run} can resume: nothing changed"
        return
    refused = sum(not is_accepted(change, allowed) for change in changes)
    verdict = f"cannot resume: refuses {refused} of" if refused else "can resume with"
    yield f"{run} {verdict} {len(changes)} change{'s' if len(changes) > 1 else ''}"
    for change in changes:
        verdict = "allowed" if change.removed in allowed and change.removed else change.verdict
        yield from _wrapped(f"{verdict}: {change.what}")
        if change.hint:
            yield from _wrapped(change.hint, "    ")


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )


def to_json(
    pipeline: Pipeline,
    topology: Topology,
    changes: Sequence[PipelineChange] | None,
    works: bool,
) -> dict[str, Any]:
    """Return pipeline and changes as JSON."""
    data: dict[str, Any] = {
        "pipeline": describe(pipeline),
        "upstream": {name: list(names) for name, names in topology.upstream.items()},
        "works": works,
    }
    if changes is not None:
        data["changes"] = [
            {"what": each.what, "verdict": each.verdict, "hint": each.hint} for each in changes
        ]
    return data
