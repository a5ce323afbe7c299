"""Formats of message values: JSON, Arrow IPC or plain bytes, by name. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.topics.kafka.arrow_values import decode_arrow, encode_arrow
from penstock.topics.kafka.json_values import check_json_schema, decode_json, encode_json
from penstock.topics.kafka.messages import MessageBlock, add_message_columns, split_schema
from penstock.topics.schema import parse_schema, schema_text

FORMATS = ("json", "arrow", "bytes")
#: The columns of plain bytes.
BYTES_SCHEMA = parse_schema(
    "value binary, _key binary, _partition int, _offset long, _timestamp timestamp"
)
_BYTES_COLUMNS = "value, _key, _partition, _offset, _timestamp"


@dataclass(frozen=True, slots=True)
class ValueDecoder:
    """Turns messages into rows of a schema."""

    format: str
    schema: pa.Schema

    def decode(self, block: MessageBlock) -> pa.RecordBatch:
        """Return the rows of a block; `InputError` names topic, partition, offset and column."""
        inner, counts = split_schema(self.schema), None
        if self.format == "json":
            columns = decode_json(block, inner)
        elif self.format == "arrow":
            columns, counts = decode_arrow(block, inner)
        else:
            columns = {"value": pa.array(block.values, pa.binary())}
        return add_message_columns(block, columns, self.schema, counts)


def make_decoder(format: str, schema: str | pa.Schema | None) -> ValueDecoder:
    """Check a format and a schema; without a schema only plain bytes can be read."""
    check_format(format)
    if schema is None:
        if format != "bytes":
            hint = 'such as schema="id long, amount double"'
            raise InputError("schema", f"is needed for values of the format {format!r}", hint)
        return ValueDecoder(format, BYTES_SCHEMA)
    columns = parse_schema(schema) if isinstance(schema, str) else schema
    inner = split_schema(columns)
    if format == "json":
        check_json_schema(inner)
    elif format == "bytes" and inner != pa.schema({"value": pa.binary()}):
        problem = f"must have the columns {_BYTES_COLUMNS} or some of them"
        raise InputError("schema", f"{problem}, got {schema_text(columns)!r}", "leave it out")
    return ValueDecoder(format, columns)


def check_format(format: str) -> None:
    """Raise `InputError` if a format is unknown."""
    if format not in FORMATS:
        raise InputError("values", f"unknown format {format!r}", nearest(str(format), FORMATS))


@dataclass(frozen=True, slots=True)
class ValueEncoder:
    """Turns rows into keys and values of messages."""

    format: str
    key: str | None = None

    def encode(self, rows: pa.RecordBatch) -> tuple[Sequence[bytes | None], Sequence[bytes | None]]:
        """Return keys and values; the key of a message is the text of its column."""
        if self.format == "arrow":
            values = list(encode_arrow(rows))
            return [None] * len(values), values
        if self.format == "json":
            return self._keys(rows), encode_json(rows)
        return self._keys(rows), rows.column("value").cast(pa.binary()).to_pylist()

    def _keys(self, rows: pa.RecordBatch) -> Sequence[bytes | None]:
        if self.key is None:
            return [None] * rows.num_rows
        column = rows.column(self.key)
        if not pa.types.is_binary(column.type):
            column = column.cast(pa.string()).cast(pa.binary())
        keys: list[bytes | None] = column.to_pylist()
        return keys


def make_encoder(format: str, schema: pa.Schema, key: str | None) -> ValueEncoder:
    """Check that rows of a schema can be written in a format, with the key."""
    check_format(format)
    if key is not None:
        _check_key(format, schema, key)
    if format == "bytes":
        names = [name for name in schema.names if name not in ("_key", key, "_event")]
        kinds = (pa.binary(), pa.string())
        if names != ["value"] or schema.field("value").type not in kinds:
            problem = f"must be one column `value` of binary or string, got {schema_text(schema)!r}"
            raise InputError("rows", problem, "select it, or write values='json'")
        if key is None and "_key" in schema.names:
            return ValueEncoder(format, "_key")
    return ValueEncoder(format, key)


def _check_key(format: str, schema: pa.Schema, key: str) -> None:
    if format == "arrow":
        problem = "cannot be set with values='arrow', because a message holds many rows"
        raise InputError("key", problem, "leave it out, or write values='json'")
    if key not in schema.names:
        raise InputError("key", f"there is no column {key!r}", nearest(key, schema.names))
    if pa.types.is_nested(schema.field(key).type):
        raise InputError("key", f"column {key!r} is nested", "choose a plain column")
