"""Query 1: bids in euros."""

from decimal import Decimal

import numpy as np
import pyarrow as pa

from penstock.nexmark.event_order import BIDS
from penstock.nexmark.queries.common import (
    RESULTS,
    QueryTruth,
    Variant,
    begin,
    read_from,
    sink,
    sources,
    usual,
)
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.text_columns import pc

#: The reference is exact; the thesis multiplies in single precision and cuts off the rest.
EXACT, SINGLE = Decimal("0.908"), np.float32(0.82)
COLUMNS: dict[Variant, str] = {
    "thesis": "auction long, bidder long, price {}, dateTime timestamp",
    "reference": "auction long, bidder long, price {}, dateTime timestamp, extra string",
}
PRICE: dict[Variant, str] = {"thesis": "long", "reference": "decimal(23,3)"}
TRUTHS: dict[Variant, QueryTruth] = {
    "thesis": QueryTruth(
        sql="""
        select auction, bidder, trunc(price::float * 0.82::float)::bigint as price, "dateTime"
        from bids
        """
    ),
    "reference": QueryTruth(
        sql="""
        select auction, bidder, (price::decimal(20, 0) * 0.908)::decimal(23, 3) as price,
            "dateTime", extra
        from bids
        """
    ),
}


def build(variant: Variant = "thesis", setting: StreamSettings | None = None) -> Pipeline:
    """Declare the pipeline."""
    pipeline = begin("q1", variant, "bids in euros")
    setting = setting or usual(variant)
    sources(pipeline, setting, {BIDS: COLUMNS[variant].format("long")})
    euros = COLUMNS[variant].format(PRICE[variant])
    pipeline.topic(RESULTS, euros)

    @pipeline.batches(reads=read_from(BIDS), writes=RESULTS)
    def mapper(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Change the price."""
        place = batch.schema.get_field_index("price")
        changed = _single if variant == "thesis" else _exact
        return batch.set_column(place, "price", changed(batch.column(place)))

    sink(pipeline, euros)
    return pipeline


def _single(dollars: pa.Array) -> pa.Array:
    return pa.array((dollars.to_numpy().astype(np.float32) * SINGLE).astype(np.int64))


def _exact(dollars: pa.Array) -> pa.Array:
    return pc.multiply(dollars.cast(pa.decimal128(19, 0)), pa.scalar(EXACT))
