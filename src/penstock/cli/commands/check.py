"""`penstock check`: validates a pipeline, and whether a run can resume with it."""

import argparse
import json
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.options import parse_pairs
from penstock.cli.verbs import add_command
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.core.topology import Topology
    from penstock.pipelines.changes import PipelineChange
    from penstock.pipelines.operator import Operator
    from penstock.pipelines.pipeline import Pipeline

EXAMPLES = """\
examples:
  penstock check ./orders.py                        validate it and print its graph
  penstock check ./orders.py --against runs/orders  what would resuming the run change?
  penstock check ./orders.py --against runs/orders --json

The command starts nothing and changes nothing. Each change gets a verdict: compatible, needs a
declaration (was=OLD_NAME, or --allow-removal NAME), or refused, with a hint what to do.

exit codes:
  0  a start would succeed
  2  a start would be refused
"""
_WIDTH = 80


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "check",
        summary="check a pipeline, and whether a run can resume with it",
        description="Check a pipeline without Spark, and whether a stopped run can resume with it.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    add("pipeline", metavar="PIPELINE", help="name, such as images, or a file ./mine.py")
    add("--against", metavar="RUN", type=Path, help="directory of a stopped run")
    about = "argument of the pipeline, such as service_s=0.2"
    add("--set", action="append", default=[], metavar="K=V", help=about)
    about = "assume penstock run --allow-removal NAME"
    add("--allow-removal", action="append", default=[], metavar="NAME", help=about)
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Check the pipeline and print the result."""
    from penstock.runs.build_args import build_pipeline  # noqa: PLC0415  (loads Arrow)

    pipeline = build_pipeline(args.pipeline, parse_pairs(args.set, "--set")).pipeline
    topology = pipeline.check()
    changes = _changes(pipeline, args.against) if args.against is not None else None
    allowed = args.allow_removal
    works = all(_is_accepted(change, allowed) for change in changes or ())
    if args.json:
        print(json.dumps(_to_json(pipeline, topology, changes, works), indent=2))
    else:
        print("\n".join([*_graph(pipeline), *_verdicts(changes, args.against, allowed)]))
    return 0 if works else 2


def _changes(pipeline: "Pipeline", run: Path) -> "list[PipelineChange]":
    from penstock.runs.pipeline_changes import compare_with_run  # noqa: PLC0415
    from penstock.runs.run_directory import SPEC_FILE  # noqa: PLC0415

    if not (run / SPEC_FILE).is_file():
        problem = "is not a run directory" if run.is_dir() else "there is no such directory"
        raise InputError(
            "--against", problem, "give a directory that penstock run has created", str(run)
        )
    return compare_with_run(pipeline, run)


def _is_accepted(change: "PipelineChange", allowed: Sequence[str]) -> bool:
    return change.is_compatible or (bool(change.removed) and change.removed in allowed)


def _graph(pipeline: "Pipeline") -> Iterator[str]:
    """Sources, operators with their bounds, topics with their columns."""
    from penstock.topics.schema import schema_text  # noqa: PLC0415

    objective_s = pipeline.objective_s
    objective = f", latency below {objective_s:g} s" if objective_s is not None else ""
    yield f"{pipeline.name}: valid{objective}"
    yield "operators"
    for operator in pipeline.operators.values():
        yield from _wrapped(f"{operator.name}: {_operator(operator)}")
    yield "topics"
    for topic in pipeline.topics.values():
        columns = "columns set at start" if topic.schema is None else schema_text(topic.schema)
        yield from _wrapped(f"{topic.name}: {columns}; {_filler(pipeline, topic.name)}")


def _operator(operator: "Operator") -> str:
    options = operator.options
    way = f"{', '.join(operator.reads) or 'outside'} -> {operator.writes or 'outside'}"
    bounds = f", {options.min_replicas} to {options.max_replicas} replicas"
    state = f", {operator.slicing.slices} slices" if operator.slicing else ""
    return f"{operator.kind}, {way}{state}{bounds if operator.scales else ''}"


def _filler(pipeline: "Pipeline", topic: str) -> str:
    if topic in pipeline.feeds:
        return "from the workload"
    writers = [op.name for op in pipeline.operators.values() if topic in op.fills]
    return f"from {writers[0]}" if writers else "from another process"


def _verdicts(
    changes: "Sequence[PipelineChange] | None", run: Path | None, allowed: Sequence[str]
) -> Iterator[str]:
    if changes is None:
        return
    yield ""
    if not changes:
        yield f"{run} can resume: nothing changed"
        return
    refused = sum(not _is_accepted(change, allowed) for change in changes)
    verdict = f"cannot resume: refuses {refused} of" if refused else "can resume with"
    yield f"{run} {verdict} {len(changes)} changes"
    for change in changes:
        verdict = "allowed" if change.removed in allowed and change.removed else change.verdict
        yield from _wrapped(f"{verdict}: {change.what}")
        if change.hint:
            yield from _wrapped(change.hint, "    ")


def _wrapped(text: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  ", break_on_hyphens=False
    )


def _to_json(
    pipeline: "Pipeline",
    topology: "Topology",
    changes: "Sequence[PipelineChange] | None",
    works: bool,
) -> dict[str, Any]:
    from penstock.pipelines.description import describe  # noqa: PLC0415

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
