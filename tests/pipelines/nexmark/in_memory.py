"""Runs a query by plain calls: topics are tables, operators take their turn in order."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock import Pipeline
from penstock.pipelines.operator import Operator
from penstock.pipelines.stateful import try_batches
from penstock.topics.schema import EVENT, schema_text


@dataclass
class Ran:
    """What came of it."""

    topics: dict[str, pa.Table]
    #: Of each operator with state: the watermark of its last batch, what was late, what it keeps.
    closed: dict[str, int | None] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)


def run(pipeline: Pipeline, events: Mapping[str, pa.Table], rows: int, *, last: bool) -> Ran:
    """Run it over events in batches of so many rows of each topic.

    With `last` an empty batch comes behind all others, which sees what they have closed.
    """
    ran = Ran(topics={topic: events[topic] for topic in pipeline.feeds})
    for name in pipeline.check().order:
        operator = pipeline.operators[name]
        if operator.slicing is not None:
            found = _with_state(operator, ran, rows, last)
        else:
            (topic,) = operator.reads
            batches = ran.topics[topic].combine_chunks().to_batches(max_chunksize=rows)
            found = pa.Table.from_batches([operator(batch) for batch in batches])
        assert found.schema.equals(operator.output_schema), f"{name}: {found.schema}"
        ran.topics[str(operator.writes)] = found
    return ran


def _with_state(operator: Operator, ran: Ran, rows: int, last: bool) -> pa.Table:
    slicing = operator.slicing
    assert slicing is not None
    batches = _cut({topic: ran.topics[topic] for topic in operator.reads}, rows)
    if last:
        batches.append({topic: ran.topics[topic].slice(0, 0) for topic in operator.reads})
    tried = try_batches(
        operator.function,
        batches,
        {topic: ran.topics[topic].schema for topic in operator.reads},
        schema_text(operator.output_schema),
        slicing,
        slices=5,
        delay_s=slicing.delay_s,
    )
    ran.late[operator.name] = sum(map(len, tried.late))
    ran.kept[operator.name] = tried.state.num_rows
    ran.closed[operator.name] = _watermark(batches[:-1], slicing.time, slicing.delay_us)
    return pa.concat_tables(tried.outputs).drop_columns(EVENT)


def _cut(topics: Mapping[str, pa.Table], rows: int) -> list[dict[str, pa.Table]]:
    """Cut all topics alike, whatever the times are in them: some are read sooner than others."""
    batches = []
    for number in count():
        batch = {name: rows_.slice(number * rows, rows) for name, rows_ in topics.items()}
        if not any(map(len, batch.values())):
            return batches
        batches.append(batch)
    raise AssertionError


def _watermark(batches: list[dict[str, pa.Table]], time: str, delay_us: int) -> int | None:
    """The rule once more: the least of the inputs' latest times, less the delay."""
    if not batches:
        return None
    latest: list[Any] = [
        max(pc.max(batch[topic][time].cast(pa.int64())).as_py() or 0 for batch in batches)
        for topic in batches[0]
    ]
    return min(latest) - delay_us if all(latest) else None
