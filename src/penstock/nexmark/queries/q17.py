"""Query 17: statistics of auctions by day, with Spark's own state.

The reference updates an auction with every bid. Here rows are final, so they are emitted when the
day is over.
"""

from typing import TYPE_CHECKING

from penstock.nexmark.event_order import BIDS
from penstock.nexmark.queries.common import (
    DELAY_S,
    REFERENCE,
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

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = (
    "auction long, day string, total_bids long, rank1_bids long, rank2_bids long, "
    "rank3_bids long, min_price long, max_price long, avg_price long, sum_price long"
)
TRUTHS: dict[Variant, QueryTruth] = {
    "reference": QueryTruth(
        sql="""
        select auction, strftime("dateTime", '%Y-%m-%d') as day, count(*) as total_bids,
            count(*) filter (price < 10000) as rank1_bids,
            count(*) filter (price between 10000 and 999999) as rank2_bids,
            count(*) filter (price >= 1000000) as rank3_bids,
            min(price) as min_price, max(price) as max_price,
            (sum(price) // count(*))::bigint as avg_price, sum(price)::bigint as sum_price
        from bids group by auction, day, epoch_us("dateTime") // 86400000000
        having (epoch_us("dateTime") // 86400000000 + 1) * 86400000000 <= $closed
        """,
        closed_by="window",
    )
}


def build(
    variant: Variant = "reference", setting: StreamSettings | None = None, delay_s: float = DELAY_S
) -> Pipeline:
    """Declare the pipeline."""
    pipeline = begin("q17", variant, "how auctions did on each day", REFERENCE)
    read = "auction long, price long, dateTime timestamp"
    sources(pipeline, setting or usual(variant), {BIDS: read})
    pipeline.topic(RESULTS, COLUMNS)

    @pipeline.native(reads=read_from(BIDS), writes=RESULTS)
    def window(bids: "DataFrame") -> "DataFrame":
        """Add up by day."""
        from pyspark.sql import functions as fn  # noqa: PLC0415 - where Spark is only

        days = bids.withWatermark("dateTime", f"{delay_s:g} seconds")
        by = days.groupBy("auction", fn.window("dateTime", "1 day"))
        figures = {
            "total_bids": "count(*)",
            "rank1_bids": "count_if(price < 10000)",
            "rank2_bids": "count_if(price >= 10000 and price < 1000000)",
            "rank3_bids": "count_if(price >= 1000000)",
            "min_price": "min(price)",
            "max_price": "max(price)",
            "avg_price": "sum(price) div count(*)",
            "sum_price": "sum(price)",
        }
        added = by.agg(*(fn.expr(text).alias(name) for name, text in figures.items()))
        day = fn.date_format("window.start", "yyyy-MM-dd").alias("day")
        return added.select("auction", day, *figures)

    sink(pipeline, COLUMNS)
    return pipeline
