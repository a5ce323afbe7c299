"""Tables as plain values: times in milliseconds, rows as dictionaries."""

import hashlib
import json
from typing import Any

import pyarrow as pa


def plain_columns(table: pa.Table) -> dict[str, list[Any]]:
    """Columns as lists."""
    return {
        name: [us // 1000 for us in column.cast(pa.int64()).to_pylist()]
        if pa.types.is_timestamp(column.type)
        else column.to_pylist()
        for name, column in zip(table.column_names, table.columns, strict=True)
    }


def plain_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as dictionaries."""
    columns = plain_columns(table)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def digest(table: pa.Table) -> str:
    """A few letters that change if anything in the table does."""
    return hashlib.sha256(json.dumps(plain_columns(table)).encode()).hexdigest()[:16]
