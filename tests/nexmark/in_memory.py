"""Runs a query by plain calls: topics are tables, operators take their turn in order.

The chunks of a table are the record batches of the topic.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock import Pipeline
from penstock.pipelines.operator import Operator
from penstock.pipelines.stateful import try_batches
from penstock.topics.partition import Partition, shares
from penstock.topics.schema import EVENT, schema_text

SLICES = 5
#: Rows of each call if the operator does not say.
CHUNK_ROWS = 1 << 16


@dataclass
class Ran:
    """What came of it."""

    topics: dict[str, pa.Table]
    #: Of each operator with state: the watermark of its last batch, what was late, what it keeps.
    closed: dict[str, int | None] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    kept: dict[str, int] = field(default_factory=dict)


def run(
    pipeline: Pipeline,
    events: Mapping[str, pa.Table],
    rows: int,
    *,
    last: bool,
    other: Mapping[str, int] | None = None,
) -> Ran:
    """Run it over events; operators with state get batches of so many rows of each topic.

    With `last` an empty batch comes behind all others, which sees what they have closed. `other`
    says how many rows single operators get instead.
    """
    ran = Ran(topics={topic: events[topic] for topic in pipeline.feeds})
    for name in pipeline.check().order:
        operator = pipeline.operators[name]
        if operator.slicing is not None:
            found = _with_state(operator, ran, (other or {}).get(name, rows), last)
        else:
            (topic,) = operator.reads
            most = operator.options.chunk_rows or CHUNK_ROWS
            batches = ran.topics[topic].combine_chunks().to_batches(max_chunksize=most)
            found = pa.Table.from_batches(
                [operator(batch) for batch in batches], operator.output_schema
            )
        assert found.schema.equals(operator.output_schema), f"{name}: {found.schema}"
        ran.topics[str(operator.writes)] = found
    return ran


def _with_state(operator: Operator, ran: Ran, rows: int, last: bool) -> pa.Table:
    slicing = operator.slicing
    assert slicing is not None
    parts = {topic: _cut(ran.topics[topic], slicing.keys[topic], rows) for topic in operator.reads}
    none = {topic: ran.topics[topic].slice(0, 0) for topic in operator.reads}
    each = zip_longest(*parts.values())
    batches = [
        {
            topic: none[topic] if part is None else part
            for topic, part in zip(parts, all_, strict=True)
        }
        for all_ in each
    ]
    if last:
        batches.append(none)
    tried = try_batches(
        operator.function,
        batches,
        {topic: ran.topics[topic].schema for topic in operator.reads},
        schema_text(operator.output_schema),
        replace(slicing, slices=SLICES),
        slices=SLICES,
        delay_s=slicing.delay_s,
    )
    ran.late[operator.name] = sum(map(len, tried.late))
    ran.kept[operator.name] = tried.state.num_rows
    ran.closed[operator.name] = _watermark(batches[:-1], slicing.time, slicing.delay_us)
    return pa.concat_tables(tried.outputs).drop_columns(EVENT)


def _cut(table: pa.Table, key: tuple[str, ...], rows: int) -> list[pa.Table]:
    """Cut a topic as its readers do: each record batch is in the order of slices.

    Topics are cut alike, whatever the times are in them: some are read sooner than others.
    """
    partition = Partition(key=key, slices=SLICES)
    sorted_ = [partition.sort(batch) for batch in table.to_batches() if batch.num_rows]
    firsts = np.cumsum([0, *(batch.num_rows for batch, _ in sorted_)])
    found = []
    for low in range(0, table.num_rows, rows):
        parts = [
            batch.slice(begin, count)
            for (batch, counts), first in zip(sorted_, firsts, strict=False)
            if low < first + batch.num_rows and first < low + rows
            for _, begin, count in shares(
                counts, max(low - first, 0), min(low + rows - first, batch.num_rows), range(SLICES)
            )
        ]
        found.append(pa.Table.from_batches(parts, table.schema))
    return found


def _watermark(batches: list[dict[str, pa.Table]], time: str, delay_us: int) -> int | None:
    """The rule once more: the least of the inputs' latest times, less the delay."""
    if not batches:
        return None
    latest: list[Any] = [
        max(pc.max(batch[topic][time].cast(pa.int64())).as_py() or 0 for batch in batches)
        for topic in batches[0]
    ]
    return min(latest) - delay_us if all(latest) else None
