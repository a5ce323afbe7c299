"""`penstock lab`: grids of runs, and comparing what came out."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from penstock.engines.spark.cluster.masters import check_java
from penstock.errors import InputError, PenstockError
from penstock.files.text import explain_os_error
from penstock.lab.grid.grid import Grid, check_grid, read_grid
from penstock.lab.grid.runner import RUNS, run_all
from penstock.reports.grid_results import GRID_FILE, jobs_of, run_compare
from penstock.reports.progress import ProgressBar

EXAMPLES = """\
examples:
  penstock lab run experiments/policies-on-cosine.toml       run it, or what is left of it
  penstock lab compare runs/policies-on-cosine               who is better, and how certain is it?
  penstock lab compare runs/policies-on-cosine --hindsight --html comparison.html
  penstock lab run experiments/spark/thesis.toml             the same on Spark, one run at a time
  penstock lab compare runs/spark-cosine runs/spark-random --markdown results.md
"""
RUN_EXAMPLES = """\
a grid is a TOML file; every list is one run for each of its values:

  name = "targets"
  [base]                       # holds for all runs
  engine = "flink"
  minutes = 140
  [grid]
  query = ["q1", "q11"]
  policy = ["ds2", { policy = "hpa-cpu", params = { target = [0.5, 0.7] } }]
  seeds = 20                   # or a list of them

fields: query workload policy engine minutes params guards workload_params profile initial
mode objective_s interval_s. A table may have a label of its own. Stop at any time: the same
command goes on with what is left.

With on = "spark" at the top, runs are real, one after the other, each in DIR/runs/. The fields
are then: query (the pipeline; q1, images, ./mine.py) numbers (the pipeline's own) workload policy
minutes speed_up rate_scale params guards workload_params initial objective_s interval_s batch_s
dry_run master executors. Ctrl-C stops the present run, which begins anew when the command is
given again. note = "..." says what is to be known of the results.
exit codes: 0 done, 1 a run on Spark has failed (the others are done), 2 you can mend it.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its two verbs."""
    parser = commands.add_parser(
        "lab",
        help="run grids of runs and compare them",
        description="Run grids of runs, simulated or on Spark, and compare them.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    running = verbs.add_parser(
        "run",
        help="run a grid, or what is left of it",
        description="Run every cell of a grid for every seed; what is there is not run again.",
        epilog=RUN_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    running.add_argument("spec", metavar="SPEC.toml", type=Path, help="the grid")
    running.add_argument("--out", metavar="DIR", type=Path, help="keep results here (runs/NAME)")
    _add_common(running)
    running.set_defaults(run=run)
    comparing = verbs.add_parser(
        "compare",
        help="compare the policies of grids that have run",
        description="Compare cells that met the same loads, over paired seeds.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    comparing.add_argument(
        "directories", metavar="DIR", type=Path, nargs="+", help="where a grid has run"
    )
    for kind in ("markdown", "csv", "html"):
        comparing.add_argument(f"--{kind}", metavar="FILE", type=Path, help=f"write {kind} too")
    comparing.add_argument(
        "--hindsight", action="store_true", help="add the distance to the least possible cost"
    )
    _add_common(comparing)
    comparing.set_defaults(run=run_compare)


def _add_common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--jobs", metavar="N", type=int, help="processes (one for each core)")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Check a grid, run what is left of it, say where it is."""
    grid = read_grid(args.spec)
    check_grid(grid, str(args.spec))
    jobs, out = _jobs(args, grid), args.out or Path("runs") / grid.name
    if grid.backend.is_sequential:
        check_java()
    _make_directory(out)
    (out / GRID_FILE).write_bytes(args.spec.read_bytes())
    failed: list[PenstockError] = []
    if grid.backend.is_sequential:
        print(f"{grid.name}: each run leaves what it says in {out / RUNS}", file=sys.stderr)
    with ProgressBar(grid.name) as bar:
        tell = failed.append if grid.backend.is_sequential else None
        run_all(grid.runs, grid.backend, out, jobs, bar.show, tell)
    for error in failed:
        print(f"error: {error}", file=sys.stderr)
    if args.json:
        print(json.dumps(_run_json(grid, out, bar, failed), indent=2))
        return 1 if failed else 0
    total, new = bar.last.total, bar.last.done - len(failed)
    print(f"{grid.name}: {len(grid.cells)} cells, {total} runs, {new} of them new, in {out}")
    if failed:
        print(f"{len(failed)} failed: the same command tries them again")
    print(f"compare them: penstock lab compare {out}")
    return 1 if failed else 0


def _jobs(args: argparse.Namespace, grid: Grid) -> int | None:
    jobs = jobs_of(args)
    if not grid.backend.is_sequential:
        return jobs
    if jobs not in (None, 1):
        problem = f"runs on {grid.backend.name.capitalize()} share the cores, got {jobs}"
        raise InputError("--jobs", problem, "they go one after the other: leave it out")
    return 1


def _make_directory(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError("--out", f"cannot be made: {explain_os_error(error)}") from None


def _run_json(
    grid: Grid, out: Path, bar: ProgressBar, failed: list[PenstockError]
) -> dict[str, Any]:
    return {
        "name": grid.name,
        "out": str(out),
        "runs": bar.last.total,
        "new": bar.last.done - len(failed),
        "failed": list(map(str, failed)),
        "cells": [
            {
                "cell": cell.name,
                "group": cell.group,
                "label": cell.label,
                "seeds": [spec.seed for spec in cell.specs],
            }
            for cell in grid.cells
        ],
    }
