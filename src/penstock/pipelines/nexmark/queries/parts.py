"""What the queries have in common: how they begin and end, and what is known to be true."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import pyarrow as pa

from penstock.errors import InputError, nearest
from penstock.pipelines.nexmark.order import Kind
from penstock.pipelines.nexmark.setting import Setting
from penstock.pipelines.nexmark.stream import making
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.schema import parse_schema

Variant = Literal["thesis", "reference"]
#: The topics that the query's own operators fill, and the sink.
RESULTS, OUT = "results", "out"
#: Seconds that events may be behind. They are made in order, but replicas work side by side.
DELAY_S = 4.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What must be in `out`: SQL of DuckDB over the tables persons, auctions and bids."""

    sql: str
    #: The operator that tells only what its watermark has closed. Then the SQL has `$closed`, the
    #: watermark of its last batch in microseconds; and it holds however batches were cut.
    closed_by: str | None = None


def begin(query: str, variant: Variant, summary: str) -> Pipeline:
    """Begin a pipeline."""
    if variant not in (known := get_args(Variant)):
        raise InputError("variant", f"unknown variant {variant!r}", nearest(variant, known))
    return Pipeline(query, objective_s=5, summary=summary)


def sources(
    pipeline: Pipeline,
    variant: Variant,
    setting: Setting | None,
    columns: Mapping[Kind, str],
    change: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None,
) -> None:
    """Feed the kinds of events that a query needs, each into a topic, in their proportion.

    A source reads whole events and hands on those columns that the query needs, in the topic
    `read_from(kind)`. It is called `source`, or by its kind if there are several. Without a
    setting it is that of the variant: the thesis has nothing hot.
    """
    chosen = setting or Setting(hot=variant == "reference")
    together = sum(kind.share for kind in columns)
    for kind, wanted in columns.items():
        pipeline.topic(kind.name, kind.schema)
        share = kind.share / together
        make = making(kind, chosen)
        pipeline.produces(kind.name, arrivals="deterministic", share=share)(make)
        pipeline.topic(read_from(kind), wanted)
        pipeline.batches(reads=kind.name, writes=read_from(kind))(
            _picking("source" if len(columns) == 1 else kind.name, wanted, change)
        )


def read_from(kind: Kind) -> str:
    """Name the topic with the columns of a kind of events that a query needs."""
    return f"{kind.name}-read"


def sink(pipeline: Pipeline, columns: str) -> None:
    """Take the results to where they are wanted, in these columns."""
    pipeline.topic(OUT, columns)
    pipeline.batches(reads=RESULTS, writes=OUT)(_picking("sink", columns))


def _picking(
    name: str, columns: str, change: Callable[[pa.RecordBatch], pa.RecordBatch] | None = None
) -> Callable[[pa.RecordBatch], pa.RecordBatch]:
    names = parse_schema(columns).names

    def pick(batch: pa.RecordBatch) -> pa.RecordBatch:
        return (change(batch) if change else batch).select(names)

    pick.__name__ = name
    return pick
