"""`penstock lab`: runs grids of runs and compares their policies."""

import argparse
import json
import shlex
import sys
from pathlib import Path
from typing import Any

from penstock.cli.subcommands import add_group, add_verb
from penstock.engines.spark.cluster.masters import check_java
from penstock.errors import InputError, PenstockError
from penstock.files.text import explain_os_error, write_text
from penstock.lab.grid.grid import Grid, check_grid, read_grid
from penstock.lab.grid.runner import RUNS, run_all
from penstock.reports.comparison_json import as_json, as_spreadsheet
from penstock.reports.comparison_text import as_document, as_page, as_terminal
from penstock.reports.grid_results import GRID_FILE, check_hindsight, compare_grid, find_grid
from penstock.reports.progress import ProgressBar

EXAMPLES = """\
examples:
  penstock lab run experiments/policies-on-cosine.toml       run a grid, or resume it
  penstock lab compare runs/policies-on-cosine               which policy is better, how certainly?
  penstock lab compare runs/policies-on-cosine --hindsight --html comparison.html
  penstock lab run experiments/spark/thesis.toml             runs on Spark, one at a time
  penstock lab compare runs/spark-cosine runs/spark-random --markdown results.md
"""
RUN_EXAMPLES = """\
A grid is a TOML file. A list adds one run per value:

  name = "targets"
  [base]                       # applies to all runs
  engine = "flink"
  minutes = 140
  [grid]
  query = ["q1", "q11"]
  policy = ["ds2", { policy = "hpa-cpu", params = { target = [0.5, 0.7] } }]
  seeds = 20                   # or a list of seeds

fields: query workload policy engine minutes params guards workload_params profile initial
mode objective_s interval_s. A table may have a label. Interrupt the command at any time; the same
command resumes it.

With on = "spark" at the top, the runs use Spark, one after the other, each in DIR/runs/. Fields:
query (the pipeline: q1, images, ./mine.py) numbers (arguments of the pipeline) workload policy
minutes speed_up rate_scale params guards workload_params initial objective_s interval_s batch_s
dry_run master executors. Ctrl-C stops the current run; the same command starts that run again.
note = "..." is printed above the results.

exit codes:
  0  done
  1  a run on Spark failed; the others are done
  2  wrong options or files; fix them first
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its verbs."""
    verbs = add_group(
        commands,
        "lab",
        summary="run grids of runs and compare them",
        description="Run grids of runs, simulated or on Spark, and compare the policies.",
        examples=EXAMPLES,
    )
    grid = add_verb(verbs, "run", "run a grid; finished runs are not repeated", RUN_EXAMPLES, run)
    grid.add_argument("spec", metavar="SPEC.toml", type=Path, help="the grid")
    about = "results directory (default: runs/NAME)"
    grid.add_argument("--out", metavar="DIR", type=Path, help=about)
    _add_jobs(grid)
    about = "compare policies under the same loads, over paired seeds"
    compare = add_verb(verbs, "compare", about, EXAMPLES, run_compare)
    about = "results directory of a grid"
    compare.add_argument("directories", metavar="DIR", type=Path, nargs="+", help=about)
    for form in ("markdown", "csv", "html"):
        compare.add_argument(f"--{form}", metavar="FILE", type=Path, help=f"write {form} as well")
    about = "add the ratio to the hindsight optimum"
    compare.add_argument("--hindsight", action="store_true", help=about)
    _add_jobs(compare)


def _add_jobs(parser: argparse.ArgumentParser) -> None:
    about = "parallel processes (default: one per core)"
    parser.add_argument("--jobs", metavar="N", type=int, help=about)


def run(args: argparse.Namespace) -> int:
    """Check a grid, run what is missing, print where the results are."""
    grid = read_grid(args.spec)
    check_grid(grid, str(args.spec))
    jobs, out = _jobs(args, grid), args.out or Path("runs") / grid.name
    if grid.backend.is_sequential:
        check_java()
    _make_directory(out)
    (out / GRID_FILE).write_bytes(args.spec.read_bytes())
    failed: list[PenstockError] = []
    if grid.backend.is_sequential:
        print(f"{grid.name}: each run writes its output to {out / RUNS}", file=sys.stderr)
    with ProgressBar(grid.name) as bar:
        on_failure = failed.append if grid.backend.is_sequential else None
        run_all(grid.runs, grid.backend, out, jobs, bar.show, on_failure)
    for error in failed:
        print(f"error: {error}", file=sys.stderr)
    if args.json:
        print(json.dumps(_run_json(grid, out, bar, failed), indent=2))
        return 1 if failed else 0
    total, new = bar.last.total, bar.last.done - len(failed)
    print(f"{grid.name}: {len(grid.cells)} cells, {total} runs, {new} of them new, in {out}")
    if failed:
        print(f"{len(failed)} failed: the same command runs them again")
    print(f"compare: penstock lab compare {out}")
    return 1 if failed else 0


def _jobs(args: argparse.Namespace, grid: Grid) -> int | None:
    jobs = _check_jobs(args)
    if not grid.backend.is_sequential:
        return jobs
    if jobs not in (None, 1):
        problem = f"must be 1 for runs on {grid.backend.name.capitalize()}, got {jobs}"
        raise InputError("--jobs", problem, "they run one after the other: omit --jobs")
    return 1


def _make_directory(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError("--out", f"cannot be created: {explain_os_error(error)}") from None


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


def run_compare(args: argparse.Namespace) -> int:
    """Compare the grids, write the files, print the comparison."""
    jobs = _check_jobs(args)
    found = {directory: find_grid(directory) for directory in args.directories}
    if args.hindsight:
        check_hindsight(found)
    grids = [
        compare_grid(directory, grid, jobs, hindsight=args.hindsight)
        for directory, grid in found.items()
    ]
    title = grids[0].name if len(grids) == 1 else ""
    if (path := args.markdown) is not None:
        page = as_document(title or path.stem, grids, _command(args, "--markdown"))
        _write(path, page, "--markdown")
    if (path := args.html) is not None:
        _write(path, as_page(title or path.stem, grids, _command(args, "--html")), "--html")
    if args.csv is not None:
        _write(args.csv, as_spreadsheet(grids), "--csv")
    if args.json:
        data = [as_json(grid) for grid in grids]
        print(json.dumps(data[0] if len(data) == 1 else {"grids": data}, indent=2))
    else:
        print(as_terminal(grids))
    return 0


def _check_jobs(args: argparse.Namespace) -> int | None:
    if args.jobs is not None and args.jobs < 1:
        raise InputError("--jobs", f"must be at least 1, got {args.jobs}")
    jobs: int | None = args.jobs
    return jobs


def _command(args: argparse.Namespace, option: str) -> str:
    """Return the command that makes a file again."""
    more = ["--hindsight"] if args.hindsight else []
    directories, path = map(str, args.directories), str(vars(args)[option.removeprefix("--")])
    return shlex.join(["penstock", "lab", "compare", *directories, *more, option, path])


def _write(path: Path, text: str, option: str) -> None:
    write_text(path, text, option)
    print(f"wrote {path}", file=sys.stderr)
