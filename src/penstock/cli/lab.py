"""`penstock lab`: grids of runs, and comparing what came out."""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from penstock.cli.comparing import as_document, as_json, as_page, as_spreadsheet, as_terminal
from penstock.cli.progress import Bar
from penstock.errors import InputError
from penstock.lab.bounds import with_hindsight
from penstock.lab.compare import compare
from penstock.lab.grid import Grid, check_grid, read_grid
from penstock.lab.runner import kept_results, run_all

EXAMPLES = """\
examples:
  penstock lab run experiments/policies-on-cosine.toml       run it, or what is left of it
  penstock lab compare runs/policies-on-cosine               who is better, and how certain is it?
  penstock lab compare runs/policies-on-cosine --hindsight --html comparison.html
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
"""
#: The grid as it was run, beside its results.
GRID_FILE = "grid.toml"


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its two verbs."""
    parser = commands.add_parser(
        "lab",
        help="run grids of simulations and compare them",
        description="Run grids of simulations and compare them.",
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
        help="compare the policies of a grid that has run",
        description="Compare cells that met the same loads, over paired seeds.",
    )
    comparing.add_argument("directory", metavar="DIR", type=Path, help="where the grid has run")
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
    jobs, out = _jobs(args), args.out or Path("runs") / grid.name
    _make_directory(out)
    (out / GRID_FILE).write_bytes(args.spec.read_bytes())
    with Bar(grid.name) as bar:
        run_all(grid.runs, out, jobs, bar.show)
    if args.json:
        print(json.dumps(_run_json(grid, out, bar), indent=2))
        return 0
    total, new = bar.last.total, bar.last.done
    print(f"{grid.name}: {len(grid.cells)} cells, {total} runs, {new} of them new, in {out}")
    print(f"compare them: penstock lab compare {out}")
    return 0


def run_compare(args: argparse.Namespace) -> int:
    """Compare what a directory holds."""
    file = args.directory / GRID_FILE
    if not file.is_file():
        hint = "give the directory that penstock lab run has written"
        raise InputError("DIR", f"there is no {GRID_FILE} in {str(args.directory)!r}", hint)
    grid, jobs = read_grid(file), _jobs(args)
    kept = kept_results(grid.runs, args.directory)
    _tell(kept.missing, kept.outdated, args.directory)
    results = kept.results
    if not any(results.values()):
        raise InputError("DIR", f"there are no results in {str(args.directory)!r}")
    if args.hindsight:
        with Bar("hindsight") as bar:
            results = with_hindsight(results, args.directory, jobs, bar.show)
    groups = compare(grid.cells, results)
    _write(args.markdown, lambda: as_document(grid.name, groups))
    _write(args.csv, lambda: as_spreadsheet(groups))
    _write(args.html, lambda: as_page(grid.name, groups))
    shown = json.dumps(as_json(grid.name, groups), indent=2) if args.json else as_terminal(groups)
    print(shown)
    return 0


def _jobs(args: argparse.Namespace) -> int | None:
    if args.jobs is not None and args.jobs < 1:
        raise InputError("--jobs", f"must be at least 1, got {args.jobs}")
    jobs: int | None = args.jobs
    return jobs


def _make_directory(out: Path) -> None:
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError("--out", f"cannot be made: {error}") from None


def _run_json(grid: Grid, out: Path, bar: Bar) -> dict[str, Any]:
    return {
        "name": grid.name,
        "out": str(out),
        "runs": bar.last.total,
        "new": bar.last.done,
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


def _tell(missing: int, outdated: int, directory: Path) -> None:
    """Say what the comparison lacks."""
    again = f"; penstock lab run {directory / GRID_FILE} --out {directory} runs them"
    if missing:
        print(f"{missing} runs are missing{again}", file=sys.stderr)
    if outdated:
        changed = "a profile, policy, load or simulator that has changed since"
        print(f"{outdated} runs were made with {changed}{again} again", file=sys.stderr)


def _write(path: Path | None, make: Callable[[], str]) -> None:
    if path is None:
        return
    try:
        path.write_text(make(), encoding="utf-8")
    except OSError as error:
        raise InputError(str(path), f"cannot be written: {error.strerror}") from None
    print(f"written: {path}", file=sys.stderr)
