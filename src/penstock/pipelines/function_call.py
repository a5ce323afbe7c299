"""Calls the functions of a pipeline: operators on batches and frames, and producers of rows.

The engine and a try-out use the same calls. An operator's function sees rows without `_event`.
Its result is checked against the topic that it writes, and gets the stamps back, so that the age
of a record is known behind every operator.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import InputError
from penstock.pipelines.operator import Operator
from penstock.pipelines.output_rows import split_outputs
from penstock.pipelines.row_conversion import fit_rows
from penstock.pipelines.source_location import line_of, place_of
from penstock.pipelines.topic_declaration import MakeRows
from penstock.topics.schema import EVENT, with_event

#: Rows of one call, unless the operator sets `chunk_rows`.
CHUNK_ROWS = 65_536


def call_batch(
    operator: Operator, batch: pa.RecordBatch, resource: Any = None
) -> dict[str, pa.RecordBatch]:
    """Call the function and return its rows by topic, each under the schema of its topic.

    Exceptions of the function propagate. `InputError` means that its result does not fit, which
    other rows would not change.
    """
    if batch.num_rows == 0:
        return {}
    given = batch.drop_columns([EVENT])
    with_resource = operator.options.resource is not None
    result = operator.function(given, resource) if with_resource else operator.function(given)
    try:
        outputs = {
            topic: _fitted(operator, topic, rows, batch.column(EVENT))
            for topic, rows in split_outputs(result, operator.outputs).items()
        }
    except InputError as wrong:
        raise wrong.under(operator.name).at(operator.where) from None
    return {topic: rows for topic, rows in outputs.items() if rows.num_rows}


def call_frame(operator: Operator, *given: Any) -> Any:
    """Call the function of a frame operator; an unknown column is an `InputError`."""
    try:
        return operator.function(*given)
    except Exception as error:
        # compared by name: pyspark need not be imported for a try-out
        if type(error).__name__ != "AnalysisException":
            raise
        problem = str(error).partition("\n")[0]
        raise InputError(operator.name, problem, where=operator.where) from None


def chunks(batch: pa.RecordBatch, max_rows: int | None) -> Iterator[pa.RecordBatch]:
    """Cut a batch into chunks of at most `max_rows`, without copying."""
    for begin in range(0, batch.num_rows, max_rows or max(1, batch.num_rows)):
        yield batch.slice(begin, max_rows)


def _fitted(operator: Operator, topic: str, result: Any, stamps: pa.Array) -> pa.RecordBatch:
    schema = operator.output_schemas.get(topic)
    if schema is None:
        raise InputError("writes", f"topic {topic!r} is not declared")
    if not isinstance(result, pa.RecordBatch | pa.Table | Mapping):
        hint = "a pa.RecordBatch, a pa.Table, a dictionary of columns, or None for no rows"
        raise InputError("result", f"must be rows, got {type(result).__name__}", hint)
    names = result.keys() if isinstance(result, Mapping) else result.schema.names
    if EVENT in names:
        return fit_rows(result, with_event(schema))
    rows = fit_rows(result, schema)
    own = _stamps(stamps, rows.num_rows)
    return pa.RecordBatch.from_arrays([*rows.columns, own], schema=with_event(schema))


def _stamps(given: pa.Array, rows: int) -> pa.Array:
    """Return stamps for this many rows: one to one if possible, otherwise by position."""
    if rows == len(given):
        return given
    return given.take(pa.array(np.arange(rows) * len(given) // max(1, rows)))


def fit_producer(make: MakeRows, schema: pa.Schema) -> MakeRows:
    """Return a function that gives the same rows under exactly this schema.

    It may return a table, a batch or a dictionary of columns; an error names its line.
    """

    def make_fitted(first_id: int, due: pa.Array) -> pa.Table:
        try:
            return pa.Table.from_batches([fit_rows(call_producer(make, first_id, due), schema)])
        except InputError as wrong:
            raise wrong.at(wrong.where or place_of(make)) from wrong.__cause__

    return make_fitted


def call_producer(make: MakeRows, first_id: int, due: pa.Array) -> pa.Table:
    """Call the function and return its rows as a table."""
    try:
        rows = make(first_id, due)
        return rows if isinstance(rows, pa.Table) else pa.table(rows)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # sys.exit() in a function must not end the command
        name = getattr(make, "__name__", "function")
        problem = f"cannot be made: {type(error).__name__}: {error}"
        file = place_of(make).rpartition(":")[0]
        raise InputError(name, problem, where=line_of(error, file)) from error
