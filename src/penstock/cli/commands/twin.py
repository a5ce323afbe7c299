"""`penstock twin`: simulates runs on Spark with a calibrated profile and compares."""

import argparse
import json
import sys
from pathlib import Path

from penstock.cli.subcommands import add_command
from penstock.engines.simulator.library import load_profile
from penstock.errors import InputError
from penstock.files.text import write_text
from penstock.reports.pictures import draw_over_time
from penstock.reports.tables import as_text
from penstock.reports.terminal import can_redraw
from penstock.reports.twin_report import as_document, as_json, as_table, panels
from penstock.twin.comparison import compare_with_twins

EXAMPLES = """\
examples:
  penstock twin runs/q1-cosine --profile spark-q1.toml             how accurate is the twin?
  penstock twin runs/q1-cosine --profile spark-q1.toml --svg both.svg
  penstock twin runs/twin/* --profile spark.toml --markdown docs/twin.md

The twin has the workload, seed, policy, parameters and guards of the run. The profile provides the
service times and overheads; penstock calibrate fits them to other runs.
Error bounds: mean replicas 15 %, mean latency 25 %, rescales 2.
"""
SHIPPED = "spark"


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "twin",
        summary="simulate a run on Spark and compare both",
        description="Simulate runs on Spark with the same load and policy, and compare.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    add("runs", metavar="RUN", nargs="+", type=Path, help="run directories")
    add("--profile", metavar="FILE.toml", default=SHIPPED, help="profile (default: %(default)s)")
    about = "simulations per run (default: %(default)s)"
    add("--seeds", metavar="N", type=int, default=5, help=about)
    add("--svg", metavar="FILE", type=Path, help="draw run and twin (one run only)")
    add("--markdown", metavar="FILE", type=Path, help="write a document with all runs")
    add("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Simulate the twins, compare, print."""
    if args.seeds < 1:
        raise InputError("--seeds", f"must be at least 1, got {args.seeds}")
    if args.svg is not None and len(args.runs) > 1:
        raise InputError("--svg", "works with one run only", "give one RUN, or omit --svg")
    profile = load_profile(args.profile)
    comparisons = [
        compare_with_twins(directory, profile, args.seeds, _show_progress)
        for directory in args.runs
    ]
    cells = [comparison.cell for comparison in comparisons]
    if args.svg is not None:
        first = comparisons[0]
        draw_over_time(panels(first.run.ticks, first.twin_ticks), args.svg, first.cell.title)
    if args.markdown is not None:
        page = as_document(cells, profile, _command(args))
        write_text(args.markdown, page, "--markdown")
    if args.json:
        print(json.dumps(as_json(cells, profile.name), indent=2))
    else:
        print("\n\n".join(as_text(as_table(cell)) for cell in cells))
    return 0


def _show_progress(run: str, done: int, total: int) -> None:
    if can_redraw(sys.stderr):
        end = "\n" if done == total else ""
        print(f"\r{run}: twin {done} of {total}", end=end, file=sys.stderr, flush=True)


def _command(args: argparse.Namespace) -> str:
    named = "" if args.profile == SHIPPED else f" --profile {Path(args.profile).name}"
    return f"penstock twin RUN...{named} --seeds {args.seeds} --markdown {args.markdown.name}"
