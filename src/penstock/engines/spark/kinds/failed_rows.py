"""Rows on which a function fails: found by bisection, written to an error topic."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from penstock.topics.schema import EVENT

#: The rows of each topic that a function returned.
Results = Mapping[str, pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class FailedRow:
    """A row on which the function failed."""

    #: Its place among the rows that were given.
    place: int
    row: pa.RecordBatch
    problem: str


def call_healthy(
    rows: pa.RecordBatch, call: Callable[[int, pa.RecordBatch], Results], place: int = 0
) -> Iterator[Results | FailedRow]:
    """Yield the results for all rows in order, and each row on which the function fails.

    `call` gets the place of its first row, and rows.
    """
    try:
        results = call(place, rows)
    except Exception as error:
        if rows.num_rows == 1:
            yield FailedRow(place, rows, f"{type(error).__name__}: {error}")
            return
        half = rows.num_rows // 2
        yield from call_healthy(rows.slice(0, half), call, place)
        yield from call_healthy(rows.slice(half), call, place + half)
        return
    yield results


def build_letter(
    topic: str, offset: int | None, row: pa.RecordBatch, problem: str, schema: pa.Schema
) -> pa.RecordBatch:
    """Return the record of a row; it has no offset if it was passed on inside a chain."""
    text = json.dumps(row.drop_columns([EVENT]).to_pylist()[0], default=str)
    columns = {
        "topic": [topic],
        "offset": [offset],
        "error": [problem],
        "row": [text],
        EVENT: row[EVENT],
    }
    return pa.RecordBatch.from_pydict(columns, schema=schema)
