"""Compares the cells of grids, with the results in their directories."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.progress import WorkProgress
from penstock.errors import InputError
from penstock.files.text import is_file
from penstock.lab.comparison.cells import Group, compare
from penstock.lab.comparison.replica_changes import add_changes
from penstock.lab.grid.grid import Grid, read_grid
from penstock.lab.grid.runner import GRID_FILE, read_kept_results
from penstock.lab.hindsight.bounds import add_hindsight


@dataclass(frozen=True, slots=True, kw_only=True)
class GridComparison:
    """The comparison of one grid, group by group."""

    name: str
    #: The note of the grid.
    note: str = ""
    #: Runs without a result, runs whose inputs have changed since, and all runs of the grid.
    missing: int = 0
    outdated: int = 0
    runs: int = 0
    groups: tuple[Group, ...]


def compare_grids(
    directories: Sequence[Path],
    *,
    hindsight: bool = False,
    changes: bool = False,
    jobs: int | None = None,
    on_progress: Callable[[WorkProgress], None] | None = None,
) -> list[GridComparison]:
    """Compare each grid; `hindsight` adds the cost of the cheapest possible runs.

    `changes` adds how often replicas changed and turned back, from the journals of the runs.
    """
    grids = {directory: find_grid(directory) for directory in directories}
    if hindsight:
        _check_hindsight(grids)
    return [
        _compare(directory, grid, jobs, hindsight, changes, on_progress)
        for directory, grid in grids.items()
    ]


def find_grid(directory: Path) -> Grid:
    """Read the grid that was run in a directory."""
    file = directory / GRID_FILE
    if not is_file(file):
        hint = "give a directory that penstock lab run has written"
        raise InputError("DIR", f"there is no {GRID_FILE} in {str(directory)!r}", hint)
    return read_grid(file)


def _compare(
    directory: Path,
    grid: Grid,
    jobs: int | None,
    hindsight: bool,
    changes: bool,
    on_progress: Callable[[WorkProgress], None] | None,
) -> GridComparison:
    kept = read_kept_results(grid.runs, grid.backend, directory)
    results = kept.results
    if not any(results.values()):
        raise InputError("DIR", f"there are no results in {str(directory)!r}")
    if hindsight:
        results = add_hindsight(results, directory, jobs, on_progress)
    if changes:
        results = add_changes(results, directory)
    return GridComparison(
        name=grid.name,
        note=grid.note,
        missing=kept.missing,
        outdated=kept.outdated,
        runs=sum(map(len, grid.runs.values())),
        groups=compare(grid.cells, results),
    )


def _check_hindsight(grids: dict[Path, Grid]) -> None:
    """Refuse runs on Spark: only the capacities of the simulator are known."""
    for directory, grid in grids.items():
        if grid.backend.name != "simulator":
            problem = f"{str(directory)!r} contains runs on {grid.backend.name.capitalize()}"
            hint = "works for simulated runs only: omit --hindsight"
            raise InputError("--hindsight", problem, hint)
