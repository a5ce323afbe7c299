"""`penstock lab compare`: what the directories of grids hold, side by side."""

import argparse
import json
import shlex
import sys
from pathlib import Path

from penstock.errors import InputError
from penstock.files.text import is_file, write_text
from penstock.lab.comparison.cells import compare
from penstock.lab.grid.grid import Grid, read_grid
from penstock.lab.grid.runner import kept_results
from penstock.lab.hindsight.bounds import with_hindsight
from penstock.reports.comparison_json import GroupComparison, as_json, as_spreadsheet
from penstock.reports.comparison_text import as_document, as_page, as_terminal
from penstock.reports.progress import ProgressBar

#: The grid as it was run, beside its results.
GRID_FILE = "grid.toml"


def run_compare(args: argparse.Namespace) -> int:
    """Compare what each directory holds, and write it wherever it is wanted."""
    jobs = jobs_of(args)
    found = {directory: _grid_in(directory) for directory in args.directories}
    if args.hindsight:
        _refuse_real(found)
    grids = [
        _compared(directory, grid, jobs, hindsight=args.hindsight)
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
        told = [as_json(grid) for grid in grids]
        print(json.dumps(told[0] if len(told) == 1 else {"grids": told}, indent=2))
    else:
        print(as_terminal(grids))
    return 0


def jobs_of(args: argparse.Namespace) -> int | None:
    """Return how many processes are asked for."""
    if args.jobs is not None and args.jobs < 1:
        raise InputError("--jobs", f"must be at least 1, got {args.jobs}")
    jobs: int | None = args.jobs
    return jobs


def _grid_in(directory: Path) -> Grid:
    file = directory / GRID_FILE
    if not is_file(file):
        hint = "give the directory that penstock lab run has written"
        raise InputError("DIR", f"there is no {GRID_FILE} in {str(directory)!r}", hint)
    return read_grid(file)


def _compared(directory: Path, grid: Grid, jobs: int | None, *, hindsight: bool) -> GroupComparison:
    kept = kept_results(grid.runs, grid.backend, directory)
    _tell(kept.missing, kept.outdated, directory)
    results = kept.results
    if not any(results.values()):
        raise InputError("DIR", f"there are no results in {str(directory)!r}")
    if hindsight:
        with ProgressBar("hindsight") as bar:
            results = with_hindsight(results, directory, jobs, bar.show)
    return GroupComparison(
        name=grid.name,
        note=grid.note,
        missing=kept.missing,
        runs=sum(map(len, grid.runs.values())),
        groups=compare(grid.cells, results),
    )


def _refuse_real(found: dict[Path, Grid]) -> None:
    """What would have been the least is known for the simulator, whose capacities are known."""
    for directory, grid in found.items():
        if grid.backend.name != "simulator":
            problem = f"{str(directory)!r} holds runs on {grid.backend.name.capitalize()}"
            hint = "it is computed for simulated runs only: compare these without it"
            raise InputError("--hindsight", problem, hint)


def _command(args: argparse.Namespace, option: str) -> str:
    """What makes a file, for whoever wants to make it again."""
    more = ["--hindsight"] if args.hindsight else []
    directories, path = map(str, args.directories), str(vars(args)[option.removeprefix("--")])
    return shlex.join(["penstock", "lab", "compare", *directories, *more, option, path])


def _tell(missing: int, outdated: int, directory: Path) -> None:
    """Say what the comparison lacks."""
    again = f"; penstock lab run {directory / GRID_FILE} --out {directory} runs them"
    if missing:
        print(f"{missing} runs are missing{again}", file=sys.stderr)
    if outdated:
        changed = "a pipeline, policy, load or simulator that has changed since"
        print(f"{outdated} runs were made with {changed}{again} again", file=sys.stderr)


def _write(path: Path, text: str, option: str) -> None:
    write_text(path, text, option)
    print(f"written: {path}", file=sys.stderr)
