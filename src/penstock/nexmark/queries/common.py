"""Shared parts of the queries: sources, sinks, variants, expected results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.nexmark.event_order import ROUND, EventKind
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.stream import row_maker
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.schema import parse_schema

Variant = Literal["thesis", "reference"]
#: The variants of those queries that the thesis does not have.
REFERENCE: tuple[Variant, ...] = ("reference",)
#: The output topics of the main operators and of the sink.
RESULTS, OUT = "results", "out"
#: How far events may be out of order. They are generated in order, but replicas run in parallel.
DELAY_S = 4.0
#: The largest number of rows passed on together.
_MAX_ROWS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTruth:
    """The expected content of `out`: DuckDB SQL over the tables persons, auctions and bids."""

    sql: str
    #: The operator that emits only what its watermark has closed. Then the SQL has `$closed`, the
    #: watermark of its last batch in microseconds, so it is true for any cut into batches. With
    #: Spark's own state it is the watermark that Spark recorded for that batch.
    closed_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NexmarkQuery:
    """A query of the benchmark."""

    name: str
    #: Declares the pipeline, given a variant and the settings of the stream.
    build: Callable[..., Pipeline]
    #: The expected results by variant; the first is the default variant.
    truths: Mapping[Variant, QueryTruth]


def begin(
    query: str, variant: Variant, summary: str, has: Sequence[Variant] = get_args(Variant)
) -> Pipeline:
    """Create the pipeline of a query."""
    if variant not in (known := get_args(Variant)):
        raise InputError("variant", f"unknown variant {variant!r}", nearest(variant, known))
    check_variant(query, variant, has)
    return Pipeline(query, objective_s=5, summary=summary)


def check_variant(query: str, variant: Variant, has: Sequence[Variant]) -> None:
    """Raise `InputError` for a variant that the query does not have."""
    if variant not in has:
        problem, hint = f"{query} has no variant {variant!r}", f"it has {' and '.join(has)} only"
        raise InputError("variant", problem, hint)


def usual(variant: Variant) -> StreamSettings:
    """Return the settings of a variant: the thesis has no hot keys."""
    return StreamSettings(hot=variant == "reference")


def sources(
    pipeline: Pipeline,
    setting: StreamSettings,
    columns: Mapping[EventKind, str],
    delay_s: float | None = None,
    change: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> None:
    """Feed the kinds of events that a query needs, each into a topic, in their proportion.

    A source reads complete events and writes the columns that the query needs to the topic
    `read_from(kind)`. It is named `source`, or after its kind if there are several. If a stateful
    operator follows, `delay_s` is how late events may be there.
    """
    together = sum(kind.share for kind in columns)
    for kind, wanted in columns.items():
        pipeline.topic(kind.name, kind.schema)
        share = kind.share / together
        make = row_maker(kind, setting)
        pipeline.produces(kind.name, arrivals="deterministic", share=share)(make)
        pipeline.topic(read_from(kind), wanted)
        pipeline.batches(
            reads=kind.name,
            writes=read_from(kind),
            chunk_rows=None if delay_s is None else chunk_rows(kind, setting, delay_s),
        )(_select_columns("source" if len(columns) == 1 else kind.name, wanted, change))


def chunk_rows(kind: EventKind, setting: StreamSettings, delay_s: float) -> int:
    """Return how many rows of a kind may be passed on together: those of half the delay.

    Before a stateful operator they are sorted by slice, not by time.
    If it reads only some of them at once, its watermark must not pass the others.
    """
    rows = setting.clock.rate * kind.share / ROUND * delay_s / 2
    return int(min(max(rows, 1), _MAX_ROWS))


def read_from(kind: EventKind) -> str:
    """Return the name of the topic with the columns of a kind that a query needs."""
    return f"{kind.name}-read"


def sink(pipeline: Pipeline, columns: str) -> None:
    """Add the sink, which writes these columns to `out`."""
    pipeline.topic(OUT, columns)
    pipeline.batches(reads=RESULTS, writes=OUT)(_select_columns("sink", columns))


def _select_columns(
    name: str, columns: str, change: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    names = parse_schema(columns).names

    def pick(batch: pa.RecordBatch) -> pa.RecordBatch:
        return (change(batch) if change else batch).select(names)

    pick.__name__ = name
    return pick
