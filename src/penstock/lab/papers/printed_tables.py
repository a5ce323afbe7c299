"""Compares the tables of a paper with the results of runs: is the order of pairs the same?"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from penstock.errors import InputError
from penstock.lab.comparison.measures import measure
from penstock.lab.papers.claims import TIE, Results


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTable:
    """Published figures of the cells of an experiment, by group."""

    #: Measures of the columns; those in `main` are the most important ones.
    columns: tuple[str, ...]
    main: tuple[str, ...]
    #: Group -> cell -> its figures. Cells are compared within their group.
    groups: Mapping[str, Mapping[str, tuple[float, ...]]]


def parse_printed_table(data: Mapping[str, Any], cells: Mapping[str, Any]) -> PrintedTable:
    """Read from parsed TOML: columns, main, and one table of cells for each group."""
    columns = tuple(data["columns"])
    groups = {}
    for name, rows in data["groups"].items():
        for cell, figures in rows.items():
            if cell not in cells or len(figures) != len(columns):
                problem = f"must be a cell with {len(columns)} figures"
                raise InputError(f"printed.groups.{name}.{cell}", problem)
        groups[name] = {cell: tuple(map(float, figures)) for cell, figures in rows.items()}
    return PrintedTable(columns=columns, main=tuple(data["main"]), groups=groups)


def mean_figures(printed: PrintedTable, results: Results, cell: str) -> list[float]:
    """Return the figures of the runs of one cell, as means over the seeds."""
    figures = []
    for column in printed.columns:
        values = [measure(column)(result) for result in results[cell]]
        known = [value for value in values if value is not None]
        figures.append(sum(known) / len(known) if known else math.nan)
    return figures


def count_ordered_pairs(
    printed: PrintedTable, results: Results, columns: Sequence[str]
) -> tuple[int, int]:
    """Return the number of pairs with the published order, and the number of all pairs.

    Pairs with published figures within 10 % of each other are near ties and left out.
    """
    agree = total = 0
    for rows in printed.groups.values():
        ours = {cell: mean_figures(printed, results, cell) for cell in rows}
        for column in columns:
            place = printed.columns.index(column)
            for first, second in combinations(rows, 2):
                a, b = rows[first][place], rows[second][place]
                if abs(a - b) <= TIE * max(a, b):
                    continue
                total += 1
                agree += (a > b) == (ours[first][place] > ours[second][place])
    return agree, total
