"""Query 22: bids with the three folders of their URL."""

from typing import TYPE_CHECKING

from penstock.nexmark.queries.common import QueryTruth, Variant, row_by_row
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

READ = "auction long, bidder long, price long, channel string, url string"
COLUMNS = (
    "auction long, bidder long, price long, channel string, dir1 string, dir2 string, dir3 string"
)
TRUTHS: dict[Variant, QueryTruth] = {
    "reference": QueryTruth(
        sql="""
        select auction, bidder, price, channel, string_split(url, '/')[4] as dir1,
            string_split(url, '/')[5] as dir2, string_split(url, '/')[6] as dir3
        from bids
        """
    )
}


def build(variant: Variant = "reference", setting: StreamSettings | None = None) -> Pipeline:
    """Declare the pipeline."""
    about = "bids with the folders of their URL"
    return row_by_row("q22", variant, setting, about, mapper, (READ, COLUMNS))


def mapper(bids: "DataFrame") -> "DataFrame":
    """Take the URL apart."""
    folders = (f"split_part(url, '/', {part}) as dir{part - 3}" for part in (4, 5, 6))
    return bids.selectExpr("auction", "bidder", "price", "channel", *folders)
