"""`penstock check`: validates a pipeline, and whether a run can resume with it."""

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.cli.options import parse_pairs
from penstock.cli.subcommands import add_command
from penstock.errors import InputError

if TYPE_CHECKING:
    from penstock.pipelines.changes import PipelineChange
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
    # imported here because they load Arrow, which other commands do not need
    from penstock.reports.pipeline_text import (  # noqa: PLC0415
        changes_text,
        graph_text,
        is_accepted,
        to_json,
    )
    from penstock.runs.build_args import build_pipeline  # noqa: PLC0415
    from penstock.runs.run_directory import has_finished  # noqa: PLC0415

    pipeline = build_pipeline(args.pipeline, parse_pairs(args.set, "--set")).pipeline
    topology = pipeline.check()
    changes = _changes(pipeline, args.against) if args.against is not None else None
    allowed = args.allow_removal
    works = all(is_accepted(change, allowed) for change in changes or ())
    if args.json:
        print(json.dumps(to_json(pipeline, topology, changes, works), indent=2))
    else:
        print("\n".join([*graph_text(pipeline), *changes_text(changes, args.against, allowed)]))
        if args.against is not None and pipeline.feeds and has_finished(args.against):
            print(f"  {args.against} has finished: to run the file, choose another --out")
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
