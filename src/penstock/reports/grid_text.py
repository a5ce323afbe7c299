"""A grid that was run, as text and JSON: cells, runs, failures."""

from collections.abc import Iterator
from typing import Any

from penstock.lab.grid.grid_run import GridRun


def grid_text(run: GridRun) -> Iterator[str]:
    """Yield the counts and the command that compares the results."""
    counts = f"{len(run.grid.cells)} cells, {run.total} runs, {run.new} of them new"
    yield f"{run.grid.name}: {counts}, in {run.out}"
    if run.failed:
        yield f"{len(run.failed)} failed: the same command runs them again"
    yield f"compare: penstock lab compare {run.out}"


def grid_json(run: GridRun) -> dict[str, Any]:
    """Return the same as JSON, with all cells."""
    return {
        "name": run.grid.name,
        "out": str(run.out),
        "runs": run.total,
        "new": run.new,
        "failed": list(map(str, run.failed)),
        "cells": [
            {
                "cell": cell.name,
                "group": cell.group,
                "label": cell.label,
                "seeds": [spec.seed for spec in cell.specs],
            }
            for cell in run.grid.cells
        ],
    }
