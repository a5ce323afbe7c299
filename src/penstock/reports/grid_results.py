"""Reads the results of grids from their directories and compares their cells."""

import sys
from pathlib import Path

from penstock.errors import InputError
from penstock.files.text import is_file
from penstock.lab.comparison.cells import compare
from penstock.lab.grid.grid import Grid, read_grid
from penstock.lab.grid.runner import read_kept_results
from penstock.lab.hindsight.bounds import add_hindsight
from penstock.reports.comparison_json import GroupComparison
from penstock.reports.progress import ProgressBar

#: A copy of the grid, in its results directory.
GRID_FILE = "grid.toml"


def find_grid(directory: Path) -> Grid:
    """Read the grid that was run in a directory."""
    file = directory / GRID_FILE
    if not is_file(file):
        hint = "give a directory that penstock lab run has written"
        raise InputError("DIR", f"there is no {GRID_FILE} in {str(directory)!r}", hint)
    return read_grid(file)


def compare_grid(
    directory: Path, grid: Grid, jobs: int | None, *, hindsight: bool
) -> GroupComparison:
    """Compare the cells of a grid, with the results that its directory has."""
    kept = read_kept_results(grid.runs, grid.backend, directory)
    _print_gaps(kept.missing, kept.outdated, directory)
    results = kept.results
    if not any(results.values()):
        raise InputError("DIR", f"there are no results in {str(directory)!r}")
    if hindsight:
        with ProgressBar("hindsight") as bar:
            results = add_hindsight(results, directory, jobs, bar.show)
    return GroupComparison(
        name=grid.name,
        note=grid.note,
        missing=kept.missing,
        runs=sum(map(len, grid.runs.values())),
        groups=compare(grid.cells, results),
    )


def check_hindsight(grids: dict[Path, Grid]) -> None:
    """Refuse runs on Spark: only the capacities of the simulator are known."""
    for directory, grid in grids.items():
        if grid.backend.name != "simulator":
            problem = f"{str(directory)!r} contains runs on {grid.backend.name.capitalize()}"
            hint = "works for simulated runs only: omit --hindsight"
            raise InputError("--hindsight", problem, hint)


def _print_gaps(missing: int, outdated: int, directory: Path) -> None:
    """Report runs that are missing or outdated."""
    again = f"; penstock lab run {directory / GRID_FILE} --out {directory} runs them"
    if missing:
        print(f"{missing} runs are missing{again}", file=sys.stderr)
    if outdated:
        changed = "the pipeline, policy, workload or simulator changed since"
        print(f"{outdated} runs are outdated: {changed}{again} again", file=sys.stderr)
