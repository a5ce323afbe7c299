"""Query 21: bids with the number of their channel; four channels have fixed numbers."""

from typing import TYPE_CHECKING

from penstock.nexmark.queries.common import QueryTruth, Variant, row_by_row
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.schema import EVENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READ = "auction long, bidder long, price long, channel string, url string"
COLUMNS = "auction long, bidder long, price long, channel string, channel_id string"
TRUTHS: dict[Variant, QueryTruth] = {
    "reference": QueryTruth(
        sql="""
        with famous(name, number) as (
            values ('apple', '0'), ('google', '1'), ('facebook', '2'), ('baidu', '3')
        )
        select auction, bidder, price, channel,
            coalesce(number, nullif(split_part(split_part(url, '&channel_id=', 2), '&', 1), ''))
                as channel_id
        from bids left join famous on lower(channel) = name where channel_id is not null
        """
    )
}


def build(variant: Variant = "reference", setting: StreamSettings | None = None) -> Pipeline:
    """Declare the pipeline."""
    about = "bids with the number of their channel"
    return row_by_row("q21", variant, setting, about, filter, (READ, COLUMNS))


def filter(bids: "DataFrame") -> "DataFrame":
    """Find the number; a bid without one is left out."""
    result = bids.selectExpr(
        *("auction", "bidder", "price", "channel"),
        "case lower(channel) when 'apple' then '0' when 'google' then '1'"
        " when 'facebook' then '2' when 'baidu' then '3'"
        # Spark returns an empty text if nothing matches
        " else nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') end as channel_id",
        EVENT,
    )
    return result.where("channel_id is not null")
