"""Checks the arguments of ready-made functions, such as columns and seconds."""

import math
from collections.abc import Iterable, Sequence

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.topics.ddl import type_text

Names = str | Sequence[str]


def names_of(field: str, given: Names, *, least: int = 1) -> tuple[str, ...]:
    """Return one name or several as a tuple.

    >>> names_of("by", "user"), names_of("by", ["user", "page"])
    (('user',), ('user', 'page'))
    """
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not name:
            raise InputError(field, f"must name columns, got {name!r}")
    if len(names) < least:
        raise InputError(field, "must name a column")
    if len(set(names)) < len(names):
        raise InputError(field, f"names a column twice: {', '.join(names)}")
    return names


def micros_of(field: str, seconds: float, *, zero: bool = False) -> int:
    """Return seconds as whole microseconds, which event times are counted in.

    >>> micros_of("gap_s", 1.5)
    1500000
    """
    number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
    if not number or not math.isfinite(seconds) or seconds < 0 or (seconds == 0 and not zero):
        bound = "at least 0" if zero else "above 0"
        raise InputError(field, f"must be seconds, {bound}, got {seconds!r}")
    micros = round(seconds * 1_000_000)
    if micros == 0 and seconds > 0:
        raise InputError(field, f"must be at least a microsecond, got {seconds!r}")
    return micros


def column_of(schema: pa.Schema, name: str, field: str) -> pa.Field:
    """Return a column of an input; `InputError` suggests existing ones."""
    if name not in schema.names:
        raise InputError(field, f"there is no column {name!r}", nearest(name, schema.names))
    return schema.field(name)


def time_of(schema: pa.Schema, name: str) -> pa.Field:
    """Return the event-time column, which must be a timestamp."""
    column = column_of(schema, name, "time")
    if not pa.types.is_timestamp(column.type):
        problem = f"column {name!r} must be a timestamp, got {type_text(column.type)}"
        raise InputError("time", problem, "leave it out to use _event, the time a record was due")
    return column


def plain(fields: Iterable[pa.Field]) -> list[pa.Field]:
    """Return the columns as nullable."""
    return [pa.field(field.name, field.type) for field in fields]


def output_of(fields: Iterable[pa.Field]) -> pa.Schema:
    """Return the schema of an output; `InputError` if a column occurs twice."""
    schema = pa.schema(plain(fields))
    for name in schema.names:
        if schema.names.count(name) > 1:
            hint = "rename it in the operator before"
            raise InputError("reads", f"column {name!r} is one that the output adds", hint)
    return schema
