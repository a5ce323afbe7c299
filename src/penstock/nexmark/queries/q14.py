"""Query 14: bids of middle size in euros, with the time of day and the letters c of their text."""

from typing import TYPE_CHECKING

from penstock.nexmark.queries.common import QueryTruth, Variant, row_by_row
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.schema import EVENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READ = "auction long, bidder long, price long, dateTime timestamp, extra string"
COLUMNS = (
    "auction long, bidder long, price decimal(23,3), bidTimeType string, dateTime timestamp, "
    "extra string, c_counts long"
)
TRUTHS: dict[Variant, QueryTruth] = {
    "reference": QueryTruth(
        sql="""
        with euros as (
            select *, (price::decimal(20, 0) * 0.908)::decimal(23, 3) as euros,
                extract(hour from "dateTime") as hour
            from bids
        )
        select auction, bidder, euros as price,
            case when hour between 8 and 18 then 'dayTime'
                when hour not between 7 and 19 then 'nightTime' else 'otherTime' end
                as "bidTimeType",
            "dateTime", extra, len(regexp_extract_all(extra, 'c')) as c_counts
        from euros where euros > 1000000 and euros < 50000000
        """
    )
}


def build(variant: Variant = "reference", setting: StreamSettings | None = None) -> Pipeline:
    """Declare the pipeline."""
    about = "bids of middle size by time of day"
    return row_by_row("q14", variant, setting, about, filter, (READ, COLUMNS))


def filter(bids: "DataFrame") -> "DataFrame":
    """Choose by price, and calculate."""
    result = bids.selectExpr(
        *("auction", "bidder", "cast(0.908 * price as decimal(23, 3)) as price"),
        "case when hour(dateTime) >= 8 and hour(dateTime) <= 18 then 'dayTime'"
        " when hour(dateTime) <= 6 or hour(dateTime) >= 20 then 'nightTime'"
        " else 'otherTime' end as bidTimeType",
        *("dateTime", "extra"),
        "cast(length(extra) - length(replace(extra, 'c', '')) as bigint) as c_counts",
        EVENT,
    )
    return result.where("price > 1000000 and price < 50000000")
