"""Query 10: bids with the day and the minute by which files would be partitioned.

The reference writes files, in a folder for each day and minute. Here both are columns of
`out`.
"""

from typing import TYPE_CHECKING

from penstock.nexmark.queries.common import QueryTruth, Variant, row_by_row
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READ = "auction long, bidder long, price long, dateTime timestamp, extra string"
COLUMNS = f"{READ}, dt string, hm string"
TRUTHS: dict[Variant, QueryTruth] = {
    "reference": QueryTruth(
        sql="""
        select auction, bidder, price, "dateTime", extra,
            strftime("dateTime", '%Y-%m-%d') as dt, strftime("dateTime", '%H:%M') as hm
        from bids
        """
    )
}


def build(variant: Variant = "reference", setting: StreamSettings | None = None) -> Pipeline:
    """Declare the pipeline."""
    return row_by_row("q10", variant, setting, "bids by day and minute", mapper, (READ, COLUMNS))


def mapper(bids: "DataFrame") -> "DataFrame":
    """Write day and minute beside each bid."""
    return bids.selectExpr(
        *("auction", "bidder", "price", "dateTime", "extra"),
        "date_format(dateTime, 'yyyy-MM-dd') as dt",
        "date_format(dateTime, 'HH:mm') as hm",
    )
