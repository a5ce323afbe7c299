"""Query 7: the highest bids of every ten seconds, with Spark's own state.

A bid at the very end of a window is compared with that window, too, as in the reference. The
reference then swaps the columns price and bidder; that step is left out.
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

COLUMNS = "auction long, bidder long, price long, dateTime timestamp, extra string"
TRUTHS: dict[Variant, QueryTruth] = {
    "reference": QueryTruth(
        sql="""
        with timed as (
            select *, epoch_us("dateTime") as t from bids
        ), highest as (
            select max(price) as price, t // 10000000 * 10000000 as start from timed group by start
        )
        select auction, bidder, price, "dateTime", extra
        from timed join highest using (price)
        where t between start and start + 10000000 and start + 10000000 <= $closed
        """,
        closed_by="window",
    )
}


def build(
    variant: Variant = "reference", setting: StreamSettings | None = None, delay_s: float = DELAY_S
) -> Pipeline:
    """Declare the pipeline."""
    pipeline = begin("q7", variant, "the highest bids of every ten seconds", REFERENCE)
    sources(pipeline, setting or usual(variant), {BIDS: COLUMNS})
    pipeline.topic(RESULTS, COLUMNS)

    @pipeline.native(reads=read_from(BIDS), writes=RESULTS)
    def window(bids: "DataFrame") -> "DataFrame":
        """Return the highest bids of a window when it closes."""
        from pyspark.sql import functions as fn  # noqa: PLC0415 - where Spark is only

        # each side has a separate watermark: Spark loses one that both sides share
        late = f"{delay_s:g} seconds"
        seen = bids.selectExpr("price as highest", "dateTime as seen").withWatermark("seen", late)
        windows = seen.groupBy(fn.window("seen", "10 seconds")).agg(fn.max("highest").alias("most"))
        closed = windows.select("most", fn.window_time("window").alias("last"))
        # the last moment of a window is a microsecond before its end
        matches = """
            price = most and dateTime > last - interval 10 seconds
            and dateTime <= last + interval 1 microsecond
        """
        joined = bids.withWatermark("dateTime", late).join(closed, fn.expr(matches))
        return joined.select("auction", "bidder", "price", "dateTime", "extra")

    sink(pipeline, COLUMNS)
    return pipeline
