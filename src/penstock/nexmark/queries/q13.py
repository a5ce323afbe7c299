"""Query 13: bids joined with a side table.

In the reference the table is a file of 10,000 rows, each with its number and that number as a
text. Here it is made where it is needed.
"""

from typing import TYPE_CHECKING

from penstock.nexmark.queries.common import QueryTruth, Variant, row_by_row
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

#: Rows of the table.
SIDE = 10_000
READ = "auction long, bidder long, price long, dateTime timestamp"
COLUMNS = f"{READ}, value string"
TRUTHS: dict[Variant, QueryTruth] = {
    "reference": QueryTruth(
        sql="""
        select auction, bidder, price, "dateTime", side.key::varchar as value
        from bids join range(10000) side(key) on auction % 10000 = side.key
        """
    )
}


def build(variant: Variant = "reference", setting: StreamSettings | None = None) -> Pipeline:
    """Declare the pipeline."""
    about = "bids looked up in a table"
    return row_by_row("q13", variant, setting, about, join, (READ, COLUMNS))


def join(bids: "DataFrame") -> "DataFrame":
    """Look each bid up; the table is sent to all replicas, so no bid has to move."""
    from pyspark.sql import functions as fn  # noqa: PLC0415 - where Spark is only

    side = bids.sparkSession.range(SIDE).selectExpr("id as key", "cast(id as string) as value")
    found = bids.join(fn.broadcast(side), bids["auction"] % SIDE == side["key"])
    return found.select("auction", "bidder", "price", "dateTime", "value")
