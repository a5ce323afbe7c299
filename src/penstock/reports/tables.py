"""Tables as aligned text, Markdown and CSV."""

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from penstock.core.numbers import table_number


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows of text under columns; numbers are aligned to the right.

    The name of a column may have several lines, which a terminal shows below each other.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    #: How many of the first columns hold words.
    words: int = 1
    #: Lines below the table.
    notes: tuple[str, ...] = ()


def with_interval(mean: float | None, low: float, high: float) -> str:
    """Write a mean with its interval, or alone if there is none or it has no width.

    >>> with_interval(12.34, 11.91, 12.8), with_interval(0.5, 0.5, 0.5)
    ('12.3 [11.9, 12.8]', '0.500')
    """
    mean_text, low_text, high_text = map(table_number, (mean, low, high))
    if low_text == high_text:
        return mean_text
    return f"{mean_text} [{low_text}, {high_text}]"


def with_margin(mean: float | None, low: float, high: float) -> str:
    """Write a mean with the wider half of its interval, where room is scarce.

    >>> with_margin(12.34, 11.91, 12.8), with_margin(0.5, 0.5, 0.5)
    ('12.3±0.5', '0.500')
    """
    if mean is None or table_number(low) == table_number(high):
        return table_number(mean)
    margin = f"{max(mean - low, high - mean):.{3 if abs(mean) < 1 else 1}f}"
    return table_number(mean) + (f"±{margin}" if float(margin) else "")


def as_text(table: Table) -> str:
    """Write a table for a terminal.

    >>> print(as_text(Table(columns=("policy", "replicas"), rows=(("mine", "9.7"),))))
    policy  replicas
    mine         9.7
    """
    heads = [name.split("\n") for name in table.columns]
    tall = max(map(len, heads))
    lines = [*zip(*([""] * (tall - len(head)) + head for head in heads), strict=True), *table.rows]
    shown = align_rows(lines, table.words)
    title = [table.title, ""] if table.title else []
    return "\n".join([*title, *shown, *table.notes])


def align_rows(rows: Sequence[Sequence[str]], words: int = 1) -> list[str]:
    """Lay out rows in columns: the first `words` columns to the left, the others to the right.

    >>> print("\\n".join(align_rows([["operator", "avg"], ["map", "9.5"]])))
    operator  avg
    map       9.5
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    to_right = [place >= words for place in range(len(widths))]
    return [align_cells(row, widths, to_right) for row in rows]


def align_cells(cells: Sequence[str], widths: Sequence[int], to_right: Sequence[bool]) -> str:
    """Write one row; each cell is padded to the width of its column."""
    padded = zip(cells, widths, to_right, strict=True)
    parts = (cell.rjust(width) if right else cell.ljust(width) for cell, width, right in padded)
    return "  ".join(parts).rstrip()


def as_markdown(table: Table) -> str:
    """Write a table for a Markdown document.

    >>> print(as_markdown(Table(columns=("policy", "replicas"), rows=(("mine", "9.7"),))))
    | policy | replicas |
    |---|--:|
    | mine | 9.7 |
    """
    head = [f"### {table.title}", ""] if table.title else []
    rule = "".join("---|" if i < table.words else "--:|" for i in range(len(table.columns)))
    lines = [_markdown_row(table.columns), f"|{rule}", *map(_markdown_row, table.rows)]
    notes = [line for note in table.notes for line in ("", _markdown(note))]
    return "\n".join([*head, *lines, *notes])


def as_csv(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Write values as CSV; None stays empty.

    >>> as_csv(("policy", "mean"), [("a, b", 0.1), ("c", None)]).splitlines()
    ['policy,mean', '"a, b",0.1', 'c,']
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return text.getvalue()


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(_markdown, cells))} |"


def _markdown(text: str) -> str:
    """Return one line with the characters of Markdown escaped."""
    return re.sub(r"([|*_<])", r"\\\1", " ".join(text.split("\n")))
