"""Reads a recorded load from CSV: a time column, and a column of rates or of counts.

>>> lines = ["timestamp,tweets", "2015-02-26 21:42:53,600", "2015-02-26 21:47:53,900"]
>>> read_table(lines, Columns(count="tweets")).starts
(2.0, 3.0)
"""

import csv
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from penstock.errors import InputError, nearest
from penstock.workloads.workload import Workload

_TIME_NAMES = ("time", "time_s", "timestamp", "seconds", "t")


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Columns to read; empty: detected by their usual names."""

    time: str = ""
    rate: str = ""
    count: str = ""


@dataclass(frozen=True, slots=True)
class _Row:
    line: int
    time_s: float
    value: float


def read_table(lines: Iterable[str], columns: Columns, where: str = "trace") -> Workload:
    """Read a workload whose rate holds from each row to the next.

    Times are seconds or ISO time stamps (UTC unless they say otherwise) and increase.
    A count is the number of records between its row and the next one. The last row
    lasts as long as the one before it.
    """
    reader = csv.reader(lines)
    try:
        header = [name.strip() for name in next(reader, [])]
        time, value, is_count = _find(header, columns)
        cells = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    except csv.Error as error:
        raise InputError("", f"is not CSV: {error}").at(f"{where}:{reader.line_num}") from None
    except InputError as error:
        raise error.at(f"{where}:1") from None
    rows = _read_rows(cells, header, (time, value), where)
    times = [row.time_s - rows[0].time_s for row in rows]
    lengths = [later - earlier for earlier, later in pairwise(times)]
    lengths.append(lengths[-1])
    rates = [
        row.value / length if is_count else row.value
        for row, length in zip(rows, lengths, strict=True)
    ]
    levels = tuple(rates)
    return Workload(edges_s=(*times, times[-1] + lengths[-1]), starts=levels, ends=levels)


def _find(header: Sequence[str], columns: Columns) -> tuple[int, int, bool]:
    """Return the places of time and value, and whether the value is a count."""
    if columns.rate and columns.count:
        raise InputError("rate", "give the column of rates or that of counts, not both")
    usual = next((name for name in header if name.lower() in _TIME_NAMES), "")
    time = _place(header, "time", columns.time or usual)
    if columns.rate or columns.count:
        field = "rate" if columns.rate else "count"
        return time, _place(header, field, columns.rate or columns.count), field == "count"
    for field in ("rate", "count"):
        if field in header:
            return time, header.index(field), field == "count"
    hint = f"say which one it is: rate=NAME (records/s) or count=NAME; {_listed(header)}"
    raise InputError("rate", "there is no column called rate or count", hint)


def _place(header: Sequence[str], field: str, name: str) -> int:
    if not name:
        hint = f"say which one it is: {field}=NAME; {_listed(header)}"
        raise InputError(field, f"there is no column called {' or '.join(_TIME_NAMES)}", hint)
    if name not in header:
        raise InputError(field, f"there is no column {name!r}", nearest(name, header))
    return header.index(name)


def _listed(header: Sequence[str]) -> str:
    return f"the columns are {', '.join(header) or 'none: the file is empty'}"


def _read_rows(
    cells: Sequence[tuple[int, list[str]]],
    header: Sequence[str],
    places: tuple[int, int],
    where: str,
) -> list[_Row]:
    time, value = places
    read_time = _seconds if cells and _is_number(cells[0][1][time : time + 1]) else _iso_seconds
    rows: list[_Row] = []
    for line, row in cells:
        try:
            if len(row) != len(header):
                raise InputError("", f"has {len(row)} cells, the first line has {len(header)}")
            at_s = _cell(row[time], header[time], read_time)
            if rows and at_s <= rows[-1].time_s:
                raise InputError(
                    header[time], f"must be later than on line {rows[-1].line}, got {row[time]!r}"
                )
            rows.append(_Row(line, at_s, _cell(row[value], header[value], _amount)))
        except InputError as error:
            raise error.at(f"{where}:{line}") from None
    if len(rows) < 2:
        raise InputError(where, f"needs at least two rows below its first line, has {len(rows)}")
    return rows


def _cell(text: str, field: str, read: Callable[[str], float]) -> float:
    try:
        return read(text.strip())
    except ValueError as error:
        raise InputError(field, f"must be {error}, got {text!r}") from None


def _is_number(cell: Sequence[str]) -> bool:
    try:
        return bool(cell) and math.isfinite(float(cell[0]))
    except ValueError:
        return False


def _seconds(text: str) -> float:
    if not _is_number([text]):
        raise ValueError("a number of seconds, as in the first row")
    return float(text)


def _iso_seconds(text: str) -> float:
    try:
        stamp = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("seconds or a time such as 2015-02-26 21:42:53") from None
    return (stamp if stamp.tzinfo else stamp.replace(tzinfo=UTC)).timestamp()


def _amount(text: str) -> float:
    if not _is_number([text]) or float(text) < 0:
        raise ValueError("a number of at least 0")
    return float(text)
