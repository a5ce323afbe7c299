"""Writes and reads rows as JSON objects, whole columns at a time."""

from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.json

from penstock.errors import InputError
from penstock.pipelines.text_columns import join, pc

#: Arrow does not declare what is in this module.
_json: Any = pyarrow.json
_ESCAPES = (("\\", "\\\\"), ('"', '\\"'), ("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"))


def to_json(columns: Mapping[str, pa.Array]) -> pa.Array:
    """Write each row as a JSON object of text and numbers.

    >>> to_json({"id": pa.array([7]), "text": pa.array(['so "good"'])}).to_pylist()
    ['{"id":7,"text":"so \\\\"good\\\\""}']
    """
    parts: list[pa.Array | str] = []
    for name, column in columns.items():
        parts += [f'{"," if parts else "{"}"{name}":', *_value(column)]
    return join(*parts, "}")


def from_json(lines: pa.Array, schema: pa.Schema) -> pa.RecordBatch:
    """Read each line as a JSON object; what the schema does not name is left out.

    >>> from_json(pa.array(['{"a": 1, "b": "x"}']), pa.schema({"b": pa.string()})).to_pylist()
    [{'b': 'x'}]
    """
    if not len(lines):
        return pa.record_batch([[]] * len(schema), schema=schema)
    text = pa.py_buffer("\n".join(lines.to_pylist()).encode())
    try:
        rows = _json.read_json(
            pa.BufferReader(text),
            read_options=_json.ReadOptions(use_threads=False, block_size=len(text) + 1),
            parse_options=_json.ParseOptions(
                explicit_schema=schema, unexpected_field_behavior="ignore"
            ),
        )
    except pa.ArrowInvalid as wrong:
        raise InputError("line", f"is not the JSON that it should be: {wrong}") from None
    if len(rows) != len(lines):
        raise InputError("line", f"found {len(rows)} JSON objects in {len(lines)} lines")
    return rows.combine_chunks().to_batches()[0]


def _value(column: pa.Array) -> tuple[pa.Array | str, ...]:
    if not pa.types.is_string(column.type):
        return (pc.cast(column, pa.string()),)
    for sign, escaped in _ESCAPES:
        column = pc.replace_substring(column, sign, escaped)
    return ('"', column, '"')
