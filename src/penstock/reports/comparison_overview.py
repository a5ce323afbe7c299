"""All groups of a comparison in one table: what each policy cost, and how long records took."""

from collections.abc import Sequence

from penstock.core.numbers import table_number
from penstock.lab.comparison.cells import CONTESTED, Group, Row
from penstock.reports.comparison_json import GroupComparison
from penstock.reports.tables import Table


def overview(grids: Sequence[GroupComparison]) -> Table | None:
    """Return a line for each group; None if there is one only, whose own table says it all."""
    groups = [(title(grids, grid, group), group) for grid in grids for group in grid.groups]
    if len(groups) < 2:
        return None
    labels = tuple(dict.fromkeys(row.label for _, group in groups for row in group.rows))
    rows = [(name, *(_cell(group, label) for label in labels)) for name, group in groups]
    heading = f"Each cell: {' / '.join(figure.title for figure in CONTESTED)}"
    return Table(title=heading, columns=("", *labels), rows=tuple(rows))


def title(grids: Sequence[GroupComparison], grid: GroupComparison, group: Group) -> str:
    """Return what a group is called among all of them."""
    return f"{grid.name}: {group.name}" if len(grids) > 1 else group.name


def _cell(group: Group, label: str) -> str:
    found = [row for row in group.rows if row.label == label]
    return _figures(found[0]) if found else "-"


def _figures(row: Row) -> str:
    means = (row.figures[figure.key] for figure in CONTESTED)
    return " / ".join("-" if known is None else table_number(known.mean) for known in means)
