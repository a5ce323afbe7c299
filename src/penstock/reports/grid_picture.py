"""The picture of grids on Spark: replicas and latency over time, one line per cell."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from penstock.errors import InputError
from penstock.lab.comparison.grid_comparison import find_grid
from penstock.lab.grid.runner import RUNS
from penstock.reports.canvas import Target, check_ending
from penstock.reports.run_picture import draw_comparison
from penstock.runs.journal import Journal
from penstock.runs.run_directory import read_run


def draw_grids(directories: Sequence[Path], target: Target) -> None:
    """Draw the first run of each cell whose journal is there."""
    check_ending(target)
    journals = dict(entry for directory in directories for entry in _journals(directory))
    if not journals:
        hint = "only runs on Spark keep their journals; draw a simulated run with penstock explain"
        raise InputError("--picture", "there is no journal of any run", hint)
    first = find_grid(directories[0])
    draw_comparison(journals, target, f"{first.name}: {first.cells[0].group}")


def _journals(directory: Path) -> Iterator[tuple[str, Journal]]:
    for cell in find_grid(directory).cells:
        place = directory / RUNS / f"{cell.name}-{cell.specs[0].seed}"
        if place.is_dir():
            yield cell.label, read_run(place).journal
