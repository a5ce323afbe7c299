"""Do the columns of the topics around an operator fit together?"""

from collections.abc import Iterable, Mapping
from difflib import get_close_matches

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.pipelines.operator import Operator
from penstock.pipelines.stateful.slicing import Slicing, state_schemas
from penstock.pipelines.topic_declaration import ERRORS_SCHEMA, DeclaredTopic, errors_topic
from penstock.topics.ddl import type_text
from penstock.topics.partition import Partition
from penstock.topics.schema import first_difference

Schemas = Mapping[str, pa.Schema]


def check_schemas(operator: Operator, topics: Mapping[str, DeclaredTopic]) -> None:
    """Check everything that is known now; what a frame operator returns shows at the start."""
    known = {name: topic.schema for name, topic in topics.items() if topic.schema is not None}
    try:
        if operator.kind in ("batch", "sliced") and operator.output_schema is None:
            hint = how_to_declare(str(operator.writes), operator.topics)
            raise InputError("writes", f"topic {operator.writes!r} is not declared", hint)
        inputs = {topic: known[topic] for topic in operator.reads if topic in known}
        if operator.slicing is None and operator.kind != "native":
            _check_inputs(operator, inputs)
        elif operator.slicing is not None:
            _check_slices(operator, operator.slicing, inputs, topics)
        _check_side_outputs(operator, known)
        if operator.options.time is not None and operator.output_schema is not None:
            check_event_time(operator.options.time, operator.output_schema)
    except InputError as wrong:
        raise wrong.under(operator.name).at(operator.where) from None


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


def _check_inputs(operator: Operator, inputs: Schemas) -> None:
    _, by_key, column = operator.options.grouping.partition("key:")
    for topic, schema in inputs.items():
        first = next(iter(inputs))
        if differs := first_difference(inputs[first], schema):
            problem = f"{first!r} and {topic!r} differ: {differs}"
            raise InputError("reads", problem, "topics read together have the same columns")
        if by_key and column not in schema.names:
            problem = f"topic {topic!r} has no column {column!r}"
            raise InputError("grouping", problem, nearest(column, schema.names))


def _check_slices(
    operator: Operator,
    slicing: Slicing,
    inputs: Schemas,
    topics: Mapping[str, DeclaredTopic],
) -> None:
    for topic in operator.reads:
        if topic not in inputs:
            hint = how_to_declare(topic, operator.topics)
            raise InputError("reads", f"the columns of {topic!r} must be declared", hint)
    state_schemas(slicing, inputs)
    for topic, key in slicing.keys.items():
        mine = Partition(key=key, slices=slicing.slices)
        if (other := topics[topic].partition) not in (None, mine):
            assert other is not None
            problem = (
                f"{topic!r} lies in the order of {other.slices} slices of {', '.join(other.key)}"
                " for another operator"
            )
            hint = "let an operator write its rows to a second topic, which this one reads"
            raise InputError("key", problem, hint)


def _check_side_outputs(operator: Operator, known: Schemas) -> None:
    options = operator.options
    if options.on_error == "dead-letter":
        _check_fits("on_error", errors_topic(operator.name), ERRORS_SCHEMA, known)
    if options.dropped_to is not None:
        inputs = (known[topic] for topic in operator.reads if topic in known)
        _check_fits("dropped_to", options.dropped_to, next(inputs, None), known)


def _check_fits(field: str, topic: str, expected: pa.Schema | None, known: Schemas) -> None:
    if expected is None or topic not in known:
        return
    if differs := first_difference(expected, known[topic]):
        hint = f"do not declare {topic!r}: it is made with the right columns"
        raise InputError(field, f"topic {topic!r} does not fit: {differs}", hint)
