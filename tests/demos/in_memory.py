"""Runs a pipeline by plain calls: topics are tables, operators take their turn in order."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock import Pipeline
from penstock.pipelines.operator import Operator
from penstock.pipelines.stateful import try_batches
from penstock.topics.schema import EVENT

#: Rows for each call if the operator does not say: a number that nothing is a multiple of.
ROWS = 97


def run(
    pipeline: Pipeline,
    records: int,
    frames: Mapping[str, Callable[[pa.Table], pa.Table]] | None = None,
    every_us: int = 1000,
    rows_with_state: int = 3 * ROWS,
) -> dict[str, pa.Table]:
    """Feed so many records and return every topic; `frames` stands in for what needs Spark."""
    due = pa.array(np.arange(records) * every_us, pa.timestamp("us", tz="UTC"))
    topics: dict[str, pa.Table] = {}
    for feed in pipeline.feeds.values():
        made = feed.make(0, due)
        check(made, pipeline.topics[feed.topic].schema)
        topics[feed.topic] = made
    for name in pipeline.check().order:
        operator = pipeline.operators[name]
        rows = pa.concat_tables([topics[topic] for topic in operator.reads]).combine_chunks()
        if operator.kind == "frame":
            found = (frames or {})[name](rows)
        elif operator.slicing is not None:
            found, late = _with_state(operator, rows, rows_with_state)
            if operator.slicing.late_to is not None:
                topics[operator.slicing.late_to] = late
        else:
            options = operator.options
            given = () if options.resource is None else (options.resource(),)
            batches = rows.to_batches(max_chunksize=options.chunk_rows or ROWS)
            found = pa.Table.from_batches([operator(batch, *given) for batch in batches])
        check(found, operator.output_schema)
        topics[str(operator.writes)] = found
    return topics


def _with_state(operator: Operator, rows: pa.Table, batch_rows: int) -> tuple[pa.Table, pa.Table]:
    """What an operator with state makes of the rows, and those that it found late."""
    assert operator.slicing is not None
    batches = rows.combine_chunks().to_batches(max_chunksize=batch_rows)
    tried = try_batches(
        operator.function, batches, rows.schema, slices=3, delay_s=operator.slicing.delay_s
    )
    late = [row for some in tried.late for row in some]
    found = pa.concat_tables(tried.outputs).drop_columns(EVENT)
    return found, pa.Table.from_pylist(late, rows.schema)


def check(rows: pa.Table, schema: pa.Schema | None) -> None:
    """What is written must be exactly what was declared."""
    assert rows.schema.equals(schema), f"{rows.schema}\n is not \n{schema}"


def column(rows: pa.Table, name: str) -> list[Any]:
    """The values of a column."""
    values: list[Any] = rows[name].to_pylist()
    return values
