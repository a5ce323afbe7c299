"""Messages of a partition as columns: keys, values, offsets, times. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from penstock.errors import InputError
from penstock.topics.ddl import TIMESTAMP, type_text

#: Columns that Kafka knows of each message, by name; a schema may ask for them.
MESSAGE_COLUMNS: dict[str, pa.DataType] = {
    "_key": pa.binary(),
    "_partition": pa.int32(),
    "_offset": pa.int64(),
    "_timestamp": TIMESTAMP,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageBlock:
    """Some messages of one partition, in order. Offsets may have holes."""

    topic: str
    partition: int
    offsets: Sequence[int]
    values: Sequence[bytes | None]
    keys: Sequence[bytes | None]
    #: Milliseconds since 1970.
    times_ms: Sequence[int]

    def describe(self, number: int) -> str:
        """Return the place of a message, for errors."""
        return describe_place(self.topic, self.partition, self.offsets[number])

    def column(self, name: str, counts: Sequence[int] | None = None) -> pa.Array:
        """Return a column of `MESSAGE_COLUMNS`; `counts` are the rows of each message."""
        if name == "_key":
            column = pa.array(self.keys, pa.binary())
        elif name == "_partition":
            column = pa.array([self.partition] * len(self.offsets), pa.int32())
        elif name == "_offset":
            column = pa.array(self.offsets, pa.int64())
        else:
            column = pa.array([time * 1000 for time in self.times_ms], pa.int64()).cast(TIMESTAMP)
        if counts is None:
            return column
        places = [number for number, count in enumerate(counts) for _ in range(count)]
        return column.take(pa.array(places, pa.int64()))


def describe_place(topic: str, partition: int, offset: int) -> str:
    """Return the place of a message, for errors.

    >>> describe_place("orders", 3, 17)
    'topic orders, partition 3, offset 17'
    """
    return f"topic {topic}, partition {partition}, offset {offset}"


def split_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns that come from values; `InputError` if one of Kafka has a wrong type."""
    for field in schema:
        kind = MESSAGE_COLUMNS.get(field.name)
        is_text = field.name == "_key" and field.type == pa.string()
        if kind is not None and field.type != kind and not is_text:
            problem = f"must be {type_text(kind)}, got {type_text(field.type)}"
            raise InputError(f"schema.{field.name}", problem, "Kafka knows it of each message")
    return pa.schema([field for field in schema if field.name not in MESSAGE_COLUMNS])


def add_message_columns(
    block: MessageBlock,
    columns: dict[str, pa.Array],
    schema: pa.Schema,
    counts: Sequence[int] | None = None,
) -> pa.RecordBatch:
    """Return rows with the columns of values, and with those of messages that the schema has."""
    arrays = []
    for field in schema:
        column = columns.get(field.name)
        if column is None:
            column = block.column(field.name, counts)
            if column.type != field.type:
                column = _decode_keys(block, column)
        arrays.append(column)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _decode_keys(block: MessageBlock, column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowInvalid:
        for number, key in enumerate(block.keys):
            if key is not None and not _is_text(key):
                hint = "declare `_key binary`"
                raise InputError("_key", "is not UTF-8", hint, block.describe(number)) from None
        raise


def _is_text(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
