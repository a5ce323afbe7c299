"""Tries an operator on a few rows, without a stream and mostly without Spark."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.pipelines.function_call import call_batch, call_frame, chunks
from penstock.pipelines.kinds.kind import Row, find_kind
from penstock.pipelines.operator import Operator
from penstock.pipelines.resources import opened
from penstock.pipelines.row_conversion import fit_rows
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT, first_difference, parse_schema, with_event, without_event

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: The stamp of rows that come without one.
_STAMP = datetime(2000, 1, 1, tzinfo=UTC)


def try_outputs(
    operator: Operator,
    rows: Sequence[Mapping[str, Any]] | pa.Table,
    schema: str | pa.Schema | None = None,
    spark: "SparkSession | None" = None,
) -> dict[str, list[Row]]:
    """Run an operator on rows and return its output by topic; see `Operator.try_rows`."""
    kind = find_kind(operator.kind)
    kind.check_try_out(operator)
    try:
        batch, stamped = _given(rows, _schema(operator, schema))
    except InputError as wrong:
        raise wrong.under(f"{operator.name}.try_rows") from None
    results = kind.try_outputs(operator, batch, spark)
    if stamped:
        return results
    return {topic: [_without_stamp(row) for row in rows] for topic, rows in results.items()}


def try_batch(operator: Operator, batch: pa.RecordBatch) -> dict[str, list[Row]]:
    """Call the function of a batch operator, chunk by chunk; return its rows by topic."""
    results: dict[str, list[Row]] = {topic: [] for topic in operator.outputs}
    with opened(operator) as resource:
        for chunk in chunks(batch, operator.options.chunk_rows):
            for topic, rows in call_batch(operator, chunk, resource).items():
                results[topic] += rows.to_pylist()
    return results


def try_frame(operator: Operator, batch: pa.RecordBatch, spark: "SparkSession | None") -> list[Row]:
    """Call the function of a frame operator with a frame of the rows."""
    if spark is None:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - seconds, for frames only

        spark = SparkSession.builder.getOrCreate()
    frame = spark.createDataFrame(pa.Table.from_batches([batch]))
    result = call_frame(operator, frame)
    if not hasattr(result, "toArrow"):
        problem = f"must return a frame, but returned {type(result).__name__}"
        raise InputError(operator.name, problem, where=operator.where)
    table = result.toArrow()
    _check_columns(operator, table.schema)
    rows: list[Row] = table.to_pylist()
    return rows


def _check_columns(operator: Operator, returned: pa.Schema) -> None:
    """Raise `InputError` for columns that the topic would refuse in a run."""
    if operator.output_schema is None:
        return
    declared, shown = (_loose(without_event(each)) for each in (operator.output_schema, returned))
    if difference := first_difference(declared, shown):
        problem = f"its rows do not fit topic {operator.writes}: {difference}"
        hint = "cast in the operator, or change the topic's schema"
        raise InputError(operator.name, problem, hint, operator.where)


def _loose(schema: pa.Schema) -> pa.Schema:
    """Return the columns as nullable: a run requires no more."""
    return pa.schema([field.with_nullable(True).remove_metadata() for field in schema])


def _schema(operator: Operator, schema: str | pa.Schema | None) -> pa.Schema | None:
    given = parse_schema(schema) if isinstance(schema, str) else schema
    columns = operator.input_schema if given is None else given
    return None if columns is None else without_event(columns)


def _given(
    rows: Sequence[Mapping[str, Any]] | pa.Table, schema: pa.Schema | None
) -> tuple[pa.RecordBatch, bool]:
    """Return the rows with stamps, and whether they came with them."""
    if isinstance(rows, pa.Table):
        columns = dict(zip(rows.column_names, rows.columns, strict=True))
    else:
        columns = _columns(rows, schema)
    stamped = EVENT in columns
    if schema is None:
        schema = _inferred(columns)
    if not stamped:
        columns[EVENT] = pa.repeat(pa.scalar(_STAMP, TIMESTAMP), len(rows))
    return fit_rows(columns, with_event(schema)), stamped


def _inferred(columns: Mapping[str, Any]) -> pa.Schema:
    hint = 'give it: try_rows(rows, schema="id long, amount double")'
    if not columns:
        raise InputError("schema", "is not declared, and there are no rows to derive it from", hint)
    try:
        return without_event(pa.table(columns).schema)
    except pa.ArrowException as error:
        raise InputError("schema", f"cannot be derived from the rows: {error}", hint) from None


def _columns(rows: Sequence[Mapping[str, Any]], schema: pa.Schema | None) -> dict[str, Any]:
    """Turn rows into columns; missing values are null."""
    known = dict.fromkeys(schema.names if schema is not None else ())
    for row in rows:
        for name in row:
            if schema is not None and name not in known and name != EVENT:
                raise InputError("rows", f"there is no column {name!r}", nearest(name, known))
    names = known | dict.fromkeys(name for row in rows for name in row)
    return {name: [row.get(name) for row in rows] for name in names}


def _without_stamp(row: Row) -> Row:
    return {name: value for name, value in row.items() if name != EVENT}
