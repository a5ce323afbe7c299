"""Checks of columns that several kinds of operators share."""

from collections.abc import Iterable
from difflib import get_close_matches
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.pipelines.kinds.kind import Schemas
from penstock.topics.ddl import type_text
from penstock.topics.schema import first_difference

if TYPE_CHECKING:
    from penstock.pipelines.operator import Operator


def check_output_declared(operator: "Operator") -> None:
    """The columns of the topics that an operator writes must be declared."""
    known = operator.output_schemas
    for topic in operator.outputs:
        if topic not in known:
            hint = how_to_declare(topic, operator.topics)
            raise InputError("writes", f"topic {topic!r} is not declared", hint)


def check_same_columns(operator: "Operator", inputs: Schemas) -> None:
    """Topics that are read together have the same columns, among them the one of a grouping."""
    _, by_key, column = operator.options.grouping.partition("key:")
    for topic, schema in inputs.items():
        first = next(iter(inputs))
        if differs := first_difference(inputs[first], schema):
            problem = f"{first!r} and {topic!r} differ: {differs}"
            raise InputError("reads", problem, "topics read together have the same columns")
        if by_key and column not in schema.names:
            problem = f"topic {topic!r} has no column {column!r}"
            raise InputError("grouping", problem, nearest(column, schema.names))


def check_event_time(column: str, schema: pa.Schema) -> None:
    """The column that an ingest takes event times from must be a timestamp of its rows."""
    if column not in schema.names:
        raise InputError("time", f"there is no column {column!r}", nearest(column, schema.names))
    kind = schema.field(column).type
    if not pa.types.is_timestamp(kind):
        problem = f"column {column!r} must be a timestamp, but is {type_text(kind)}"
        hint = f'let the function convert it: df.withColumn("{column}", to_timestamp("{column}"))'
        raise InputError("time", problem, hint)


def how_to_declare(topic: str, declared: Iterable[str]) -> str:
    """Hint at a topic of nearly that name, or at how to declare one."""
    if close := get_close_matches(topic, list(declared), n=1, cutoff=0.8):
        return f"did you mean {close[0]!r}?"
    return f'declare it: pipeline.topic("{topic}", "id long, value double")'
