"""Small pipelines for the tests of pipelines."""

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT

COLUMNS = "id long, amount double"


def same(batch: Any) -> Any:
    """Give back what came."""
    return batch


def orders(first_id: int, due: pa.Array) -> pa.Table:
    """Rows of the source."""
    ids = range(first_id, first_id + len(due))
    return pa.table({"id": pa.array(ids), "amount": pa.array([i % 200.0 for i in ids])})


def source() -> Pipeline:
    """A pipeline with a topic that is produced, and no operator yet."""
    pipeline = Pipeline("orders")
    pipeline.topic("orders", COLUMNS)
    pipeline.produces("orders")(orders)
    return pipeline


def shop() -> Pipeline:
    """A chain of two: large orders, then their ids; it passes the check."""
    pipeline = source()
    pipeline.topic("large", COLUMNS)
    pipeline.topic("ids", "id long")

    @pipeline.batches(reads="orders", writes="large", max_replicas=4)
    def large(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.field("amount") > 100)

    @pipeline.batches(reads="large", writes="ids")
    def ids(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.select(["id"])

    return pipeline


def operator(function: Any, writes: str = COLUMNS, **options: Any) -> Operator:
    """A batch operator that reads orders and writes these columns."""
    if function.__name__ == "<lambda>":
        function.__name__ = "short"
    pipeline = source()
    pipeline.topic("out", writes)
    return pipeline.batches(reads="orders", writes="out", **options)(function)


def batch(*ids: int) -> pa.RecordBatch:
    """Orders with these ids, each due at as many microseconds."""
    return pa.record_batch(
        {
            "id": pa.array(ids, pa.int64()),
            "amount": pa.array([float(i) for i in ids], pa.float64()),
            EVENT: pa.array(ids, TIMESTAMP),
        }
    )


def stamps(rows: pa.RecordBatch) -> list[int]:
    """Microseconds of the stamps."""
    found: list[int] = rows.column(EVENT).cast(pa.int64()).to_pylist()
    return found


def moment(second: int) -> datetime:
    """A time in UTC."""
    return datetime(2024, 1, 1, second=second, tzinfo=UTC)
