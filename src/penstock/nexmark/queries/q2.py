"""Query 2: bids on certain auctions."""

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

COLUMNS = "auction long, price long"
#: Auctions whose number is a multiple of one of these.
MULTIPLES: dict[Variant, tuple[int, ...]] = {
    "thesis": (1007, 1020, 2001, 2019, 2087),
    "reference": (123,),
}
TRUTHS: dict[Variant, QueryTruth] = {
    "thesis": QueryTruth(
        sql="""
        select auction, price from bids
        where 0 in (auction % 1007, auction % 1020, auction % 2001, auction % 2019, auction % 2087)
        """
    ),
    "reference": QueryTruth(sql="select auction, price from bids where auction % 123 = 0"),
}


def build(variant: Variant = "thesis", setting: StreamSettings | None = None) -> Pipeline:
    """Declare the pipeline."""
    pipeline = begin("q2", variant, "bids on certain auctions")
    setting = setting or usual(variant)
    sources(pipeline, setting, {BIDS: COLUMNS})
    pipeline.topic(RESULTS, COLUMNS)
    multiples = MULTIPLES[variant]

    @pipeline.batches(reads=read_from(BIDS), writes=RESULTS)
    def filter(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep the bids on these auctions."""
        auction = batch["auction"].to_numpy()
        wanted = np.any([auction % number == 0 for number in multiples], axis=0)
        return batch.filter(pa.array(wanted))

    sink(pipeline, COLUMNS)
    return pipeline
