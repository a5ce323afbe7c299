"""Runs a pipeline by plain calls: topics are tables, operators take their turn in order."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from penstock import Pipeline

#: Rows for each call if the operator does not say: a number that nothing is a multiple of.
ROWS = 97


def run(
    pipeline: Pipeline,
    records: int,
    frames: Mapping[str, Callable[[pa.Table], pa.Table]] | None = None,
) -> dict[str, pa.Table]:
    """Feed so many records and return every topic; `frames` stands in for what needs Spark."""
    due = pa.array(np.arange(records) * 1000, pa.timestamp("us", tz="UTC"))
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
        else:
            options = operator.options
            given = () if options.resource is None else (options.resource(),)
            batches = rows.to_batches(max_chunksize=options.chunk_rows or ROWS)
            found = pa.Table.from_batches([operator(batch, *given) for batch in batches])
        check(found, operator.output_schema)
        topics[str(operator.writes)] = found
    return topics


def check(rows: pa.Table, schema: pa.Schema | None) -> None:
    """What is written must be exactly what was declared."""
    assert rows.schema.equals(schema), f"{rows.schema}\n is not \n{schema}"


def column(rows: pa.Table, name: str) -> list[Any]:
    """The values of a column."""
    values: list[Any] = rows[name].to_pylist()
    return values
