"""Rows of a topic, as aligned text or as one JSON object per line."""

import base64
import json
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa

from penstock.reports.tables import align_cells
from penstock.topics.port import ReadableTopic

_MAX_CELL = 40
_SHOWN_BYTES = 12


class RowPrinter:
    """Prints rows as they arrive; columns only grow wider."""

    def __init__(self, schema: pa.Schema, as_json: bool) -> None:
        self._as_json = as_json
        self._columns = ("row", *schema.names)
        numbers = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
        self._right = (True, *(any(is_a(kind) for is_a in numbers) for kind in schema.types))
        self._wide = [0] * len(self._columns)
        self._begun = as_json

    def show(self, topic: ReadableTopic, start: int, end: int) -> None:
        """Print rows [start, end) of a topic."""
        for batch in topic.read(start, end):
            rows = batch.to_pylist()
            if self._as_json:
                for offset, row in enumerate(rows, start):
                    print(json.dumps({"offset": offset, **row}, default=plain))
            else:
                numbered = enumerate(rows, start)
                self._print([[str(n), *map(cell, row.values())] for n, row in numbered])
            start += len(rows)
            print(end="", flush=True)

    def _print(self, lines: list[list[str]]) -> None:
        if not self._begun:
            self._begun = True
            lines = [list(self._columns), *lines]
        lengths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        self._wide = [max(pair) for pair in zip(self._wide, lengths, strict=True)]
        for line in lines:
            print(align_cells(line, self._wide, self._right))


def cell(value: Any) -> str:
    """Write a value in few characters on one line.

    >>> cell(None), cell(b"abc"), cell({"a": 1}), cell("two\\nlines"), cell(1 / 3)
    ('-', '3 bytes: 616263', '{"a": 1}', 'two lines', '0.333333')
    """
    if value is None:
        return "-"
    if isinstance(value, bytes):
        dots = "..." if len(value) > _SHOWN_BYTES else ""
        return f"{len(value)} bytes: {value[:_SHOWN_BYTES].hex()}{dots}"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S.%f")
    text = value if isinstance(value, str) else json.dumps(value, default=plain)
    text = " ".join(text.split())
    return text if len(text) <= _MAX_CELL else f"{text[: _MAX_CELL - 3]}..."


def plain(value: Any) -> str:
    """Convert what JSON cannot represent: bytes to base 64, times and decimals to text."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"no JSON for {value!r}")
