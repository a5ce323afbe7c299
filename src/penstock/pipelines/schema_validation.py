"""Do the columns of the topics around an operator fit together?"""

from collections.abc import Mapping

import pyarrow as pa

from penstock.errors import InputError
from penstock.pipelines.kinds.kind import Schemas, find_kind
from penstock.pipelines.operator import Operator
from penstock.pipelines.topic_declaration import ERRORS_SCHEMA, DeclaredTopic, errors_topic
from penstock.topics.schema import first_difference


def check_schemas(operator: Operator, topics: Mapping[str, DeclaredTopic]) -> None:
    """Check everything that is known now; what a frame operator returns shows at the start."""
    known = {name: topic.schema for name, topic in topics.items() if topic.schema is not None}
    try:
        inputs = {topic: known[topic] for topic in operator.reads if topic in known}
        find_kind(operator.kind).check_schemas(operator, inputs, topics)
        _check_side_outputs(operator, known)
    except InputError as wrong:
        raise wrong.under(operator.name).at(operator.where) from None


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
