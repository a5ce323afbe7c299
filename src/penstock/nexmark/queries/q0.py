"""Query 0: bids as they are, to see what the hops cost."""

from typing import TYPE_CHECKING

from penstock.nexmark.queries.common import QueryTruth, Variant, row_by_row
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = "auction long, bidder long, price long, dateTime timestamp, extra string"
TRUTHS: dict[Variant, QueryTruth] = {
    "reference": QueryTruth(sql='select auction, bidder, price, "dateTime", extra from bids')
}


def build(variant: Variant = "reference", setting: StreamSettings | None = None) -> Pipeline:
    """Declare the pipeline."""
    return row_by_row("q0", variant, setting, "bids as they are", mapper, (COLUMNS, COLUMNS))


def mapper(bids: "DataFrame") -> "DataFrame":
    """Pass all of it on."""
    return bids.selectExpr("auction", "bidder", "price", "dateTime", "extra")
