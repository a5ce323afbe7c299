"""A comparison as JSON and as CSV with one line per figure."""

from collections.abc import Iterator, Sequence
from typing import Any

from penstock.lab.comparison.cells import Group, Pair, Row
from penstock.lab.comparison.grid_comparison import GridComparison
from penstock.lab.comparison.statistics import Interval
from penstock.reports.tables import as_csv


def as_spreadsheet(grids: Sequence[GridComparison]) -> str:
    """Return one line for each cell and figure, as CSV."""
    head = ("grid", "group", "cell", "policy", "on_front", "seeds")
    lines = ((grid.name, *line) for grid in grids for g in grid.groups for line in _lines(g))
    return as_csv((*head, "figure", "mean", "low", "high"), lines)


def as_json(grid: GridComparison) -> dict[str, Any]:
    """Return all figures as JSON."""
    return {
        "name": grid.name,
        "note": grid.note,
        "runs": grid.runs,
        "missing": grid.missing,
        "groups": [
            {
                "group": group.name,
                "seeds": list(group.seeds),
                "deterministic": group.is_deterministic,
                "cells": [_row_json(row) for row in group.rows],
                "pairs": [_pair_json(pair) for pair in group.pairs],
            }
            for group in grid.groups
        ],
    }


def _lines(group: Group) -> Iterator[tuple[object, ...]]:
    for row in group.rows:
        for figure in group.shown:
            numbers = _numbers(row.figures[figure.key])
            head = (group.name, row.label, row.policy, int(row.on_front), len(group.seeds))
            yield (*head, figure.key, *numbers.values())


def _numbers(interval: Interval | None) -> dict[str, float | None]:
    """Return mean, low and high; None where unknown, because JSON has no infinity."""
    if interval is None:
        return dict.fromkeys(("mean", "low", "high"))
    known = interval.is_known
    return {
        "mean": _rounded(interval.mean),
        "low": _rounded(interval.low) if known else None,
        "high": _rounded(interval.high) if known else None,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def _row_json(row: Row) -> dict[str, Any]:
    return {
        "cell": row.cell,
        "label": row.label,
        "policy": row.policy,
        "on_front": row.on_front,
        "figures": {key: _numbers(interval) for key, interval in row.figures.items()},
    }


def _pair_json(pair: Pair) -> dict[str, Any]:
    return {
        "first": pair.first,
        "second": pair.second,
        "differences": {
            key: _numbers(pair_difference.interval)
            | {"first_is_less": pair_difference.less, "wins": pair_difference.wins}
            for key, pair_difference in pair.differences.items()
        },
    }
