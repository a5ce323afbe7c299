"""Query 20: bids with the auctions of one category that they are for, with Spark's own state.

In the reference both wait for each other without limit. Here they wait for a fixed event time, as
in query 3, so that the state stays bounded.
"""

from typing import TYPE_CHECKING

from penstock.nexmark.event_order import AUCTIONS, BIDS
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
from penstock.nexmark.queries.q3 import CATEGORY, WAITS_S
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = (
    f"{BIDS.schema}, itemName string, description string, initialBid long, reserve long, "
    "opened timestamp, expires timestamp, seller long, category long, auctionExtra string"
)
TRUTHS: dict[Variant, QueryTruth] = {
    "reference": QueryTruth(
        sql="""
        select b.auction, b.bidder, b.price, b.channel, b.url, b."dateTime", b.extra,
            a."itemName", a.description, a."initialBid", a.reserve, a."dateTime" as opened,
            a.expires, a.seller, a.category, a.extra as "auctionExtra"
        from bids b join auctions a on b.auction = a.id
        where a.category = 10
            and abs(epoch_us(b."dateTime") - epoch_us(a."dateTime")) <= 600000000
        """
    )
}


def build(
    variant: Variant = "reference", setting: StreamSettings | None = None, delay_s: float = DELAY_S
) -> Pipeline:
    """Declare the pipeline."""
    pipeline = begin("q20", variant, "bids with their auctions, of one category", REFERENCE)
    sources(pipeline, setting or usual(variant), {BIDS: BIDS.schema, AUCTIONS: AUCTIONS.schema})
    pipeline.topic(RESULTS, COLUMNS)

    @pipeline.native(reads=[read_from(BIDS), read_from(AUCTIONS)], writes=RESULTS)
    def join(bids: "DataFrame", auctions: "DataFrame") -> "DataFrame":
        """Join bids and auctions that are close in time."""
        from pyspark.sql import functions as fn  # noqa: PLC0415 - where Spark is only

        late, wait = f"{delay_s:g} seconds", f"interval {WAITS_S['reference']:g} seconds"
        chosen = auctions.where(auctions["category"] == CATEGORY)
        b, a = bids.withWatermark("dateTime", late), chosen.withWatermark("dateTime", late)
        on = f"""
            b.auction = a.id
            and b.dateTime between a.dateTime - {wait} and a.dateTime + {wait}
        """
        return b.alias("b").join(a.alias("a"), fn.expr(on)).selectExpr(
            *("b.auction", "b.bidder", "b.price", "b.channel", "b.url", "b.dateTime", "b.extra"),
            *("a.itemName", "a.description", "a.initialBid", "a.reserve", "a.dateTime as opened"),
            *("a.expires", "a.seller", "a.category", "a.extra as auctionExtra"),
        )  # fmt: skip

    sink(pipeline, COLUMNS)
    return pipeline
