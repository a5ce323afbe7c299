"""JSON values of messages: to columns and back, without Python code per row. Pure."""

import base64
import json
from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pyarrow.json as pyarrow_json

from penstock.errors import InputError
from penstock.topics.ddl import TIMESTAMP, type_text
from penstock.topics.kafka.messages import MessageBlock

#: pyarrow.compute creates its functions at import, so type checkers do not see them;
#: those of pyarrow.json are not exported explicitly.
pc: Any = pyarrow.compute

json_reader: Any = pyarrow_json

#: The largest text that is parsed at once.
MAX_BLOCK_BYTES = 1 << 30
#: Each value is wrapped, so that a value which is not one object cannot pass for several rows.
_OPEN, _BETWEEN, _CLOSE = b'{"v":', b'}\n{"v":', b"}"
#: Types that are texts in JSON, and become columns by a second step.
_TEXT_TYPES = (pa.date32(), pa.binary())


def check_json_schema(schema: pa.Schema) -> None:
    """Raise `InputError` if JSON cannot hold a column."""
    for field in schema:
        if field.type in _TEXT_TYPES:
            continue
        if (kind := _find_unreadable(field.type)) is not None:
            problem = f"{type_text(kind)} inside {type_text(field.type)} cannot be read from JSON"
            if kind == field.type:
                problem = f"{type_text(kind)} cannot be read from JSON"
            hint = "read the values as bytes and parse them in an operator"
            raise InputError(f"schema.{field.name}", problem, hint)


def _find_unreadable(kind: pa.DataType) -> pa.DataType | None:
    if pa.types.is_struct(kind):
        inner = [_find_unreadable(field.type) for field in kind]
        return next((unreadable for unreadable in inner if unreadable is not None), None)
    if pa.types.is_list(kind):
        return _find_unreadable(kind.value_type)
    return kind if pa.types.is_map(kind) or kind in _TEXT_TYPES else None


def decode_json(block: MessageBlock, schema: pa.Schema) -> dict[str, pa.Array]:
    """Return the columns of a block; `InputError` names the first wrong value and its column.

    A column that a value lacks is null; columns that the schema lacks are left out. A message
    without a value, and the value `null`, have null everywhere.
    """
    values = [b"null" if value is None else value for value in block.values]
    try:
        return _parse(values, schema)
    except (pa.ArrowInvalid, ValueError):
        number = _find_first_wrong(values, schema)
        raise _explain(values[number], schema).at(block.describe(number)) from None


def _find_first_wrong(values: Sequence[bytes], schema: pa.Schema) -> int:
    """Return the number of the first value that cannot be parsed; there is one."""
    numbers = range(len(values) - 1)
    return bisect_left(numbers, True, key=lambda number: _fails(values[: number + 1], schema))


def _parse(values: Sequence[bytes], schema: pa.Schema) -> dict[str, pa.Array]:
    if not values:
        return {field.name: pa.array([], field.type) for field in schema}
    text = _OPEN + _BETWEEN.join(values) + _CLOSE
    text.decode()  # Arrow does not check that texts are UTF-8
    readable = [pa.field(f.name, pa.string() if f.type in _TEXT_TYPES else f.type) for f in schema]
    table = json_reader.read_json(
        pa.BufferReader(text),
        read_options=json_reader.ReadOptions(
            use_threads=False, block_size=min(MAX_BLOCK_BYTES, len(text) + 1)
        ),
        parse_options=json_reader.ParseOptions(
            explicit_schema=pa.schema([pa.field("v", pa.struct(readable))]),
            newlines_in_values=True,
            unexpected_field_behavior="ignore",
        ),
    )
    if table.num_rows != len(values):
        raise ValueError("is not one JSON object")
    rows = table.column("v").combine_chunks()
    columns = {}
    for field, column in zip(schema, rows.flatten(), strict=True):
        columns[field.name] = _convert(field, column)
    return columns


def _convert(field: pa.Field, column: pa.Array) -> pa.Array:
    if not field.nullable and column.null_count:
        raise ValueError("must not be null")
    if field.type == pa.binary():
        texts = column.to_pylist()
        return pa.array([None if t is None else _decode_base64(t) for t in texts], pa.binary())
    return column if column.type == field.type else column.cast(field.type)


def _decode_base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("is not base64") from None


def _fails(values: Sequence[bytes], schema: pa.Schema) -> bool:
    try:
        _parse(values, schema)
    except (pa.ArrowInvalid, ValueError):
        return True
    return False


def _explain(value: bytes, schema: pa.Schema) -> InputError:
    """Return what is wrong with a value."""
    hint = "read the values as bytes and parse them in an operator with on_error='dead-letter'"
    try:
        parsed = json.loads(value)
    except ValueError:
        return InputError("value", f"is not JSON: {_shorten(value)}", hint)
    if not isinstance(parsed, dict | None):
        return InputError("value", f"must be a JSON object, got {_shorten(value)}", hint)
    for field in schema:
        if _fails([value], pa.schema([field])):
            part = None if parsed is None else parsed.get(field.name)
            text = _shorten(json.dumps(part).encode())
            return InputError(field.name, f"must be {_describe(field)}, got {text}", hint)
    return InputError("value", f"cannot be read: {_shorten(value)}", hint)


def _describe(field: pa.Field) -> str:
    name = type_text(field.type)
    name = {"binary": "a text in base64", "date": "a date such as 2026-01-31"}.get(name, name)
    return name if field.nullable else f"{name} and not null"


def _shorten(value: bytes) -> str:
    text = value.decode(errors="backslashreplace")
    return text if len(text) <= 80 else f"{text[:77]}..."


def encode_json(rows: pa.RecordBatch) -> list[bytes]:
    """Return each row as a JSON object.

    Times are ISO 8601 in UTC, binary columns are base64; numbers that JSON does not have, such as
    NaN, become null.

    >>> encode_json(pa.record_batch({"id": [1, None], "tag": ['a"b', "c"]}))
    [b'{"id":1,"tag":"a\\\\"b"}', b'{"id":null,"tag":"c"}']
    """
    if not rows.num_columns:
        return [b"{}"] * rows.num_rows
    parts: list[Any] = []
    for number, name in enumerate(rows.schema.names):
        parts.append(("," if number else "{") + json.dumps(name, ensure_ascii=False) + ":")
        parts.append(_encode_column(rows.column(number)).fill_null("null"))
    texts = pc.binary_join_element_wise(*parts, "}", "")
    return [text.encode() for text in texts.to_pylist()]


def _encode_column(column: pa.Array) -> pa.Array:
    """Return the JSON text of each value of a column."""
    kind = column.type
    if pa.types.is_floating(kind):
        finite = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
        return finite.cast(pa.string())
    if pa.types.is_integer(kind) or pa.types.is_decimal(kind) or pa.types.is_boolean(kind):
        return column.cast(pa.string())
    if pa.types.is_timestamp(kind):
        utc = column.cast(TIMESTAMP) if kind.tz is not None else column
        return _quote(pc.replace_substring(utc.cast(pa.string()), " ", "T"))
    if pa.types.is_date(kind):
        return _quote(column.cast(pa.string()))
    if pa.types.is_string(kind) and not _has_escapes(column):
        return _quote(column)
    return pa.array([_dump(value) for value in column.to_pylist()], pa.string())


def _has_escapes(column: pa.Array) -> bool:
    return bool(pc.any(pc.match_substring_regex(column, r'["\\\x00-\x1f]')).as_py())


def _quote(column: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise('"', column, '"', "")


def _dump(value: Any) -> str | None:
    if value is None:
        return None
    return json.dumps(_make_plain(value), ensure_ascii=False, separators=(",", ":"))


def _make_plain(value: Any) -> Any:
    """Return a nested value with what JSON has."""
    if isinstance(value, dict):
        return {str(name): _make_plain(part) for name, part in value.items()}
    if isinstance(value, list):
        is_map = value and all(isinstance(part, tuple) for part in value)
        return _make_plain(dict(value)) if is_map else [_make_plain(part) for part in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, float):
        return value if value - value == 0 else None
    if value is None or isinstance(value, str | int | bool):
        return value
    return value.isoformat() if hasattr(value, "isoformat") else str(value)
