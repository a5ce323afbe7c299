"""Queries 0, 10, 13, 14, 21 and 22 of the reference: Spark frames that look at each bid alone."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.nexmark.event_order import BIDS
from penstock.nexmark.queries.common import (
    REFERENCE,
    RESULTS,
    NexmarkQuery,
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
from penstock.topics.schema import EVENT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    FrameFunction = Callable[[DataFrame], DataFrame]

ROW_QUERIES: dict[str, NexmarkQuery] = {}
#: Rows of the side table of query 13.
SIDE = 10_000
_PRICED = "auction long, bidder long, price long"
_TIMED = f"{_PRICED}, dateTime timestamp"
_PADDED = f"{_TIMED}, extra string"
_LINKED = f"{_PRICED}, channel string, url string"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowQuery:
    """A stateless query over bids with one frame operator between source and sink."""

    name: str
    summary: str
    #: The columns that the operator reads, and those that it returns.
    reads: str
    writes: str
    function: "FrameFunction"

    def build(
        self, variant: Variant = "reference", setting: StreamSettings | None = None
    ) -> Pipeline:
        """Declare the pipeline."""
        pipeline = begin(self.name, variant, self.summary, REFERENCE)
        sources(pipeline, setting or usual(variant), {BIDS: self.reads})
        pipeline.topic(RESULTS, self.writes)
        pipeline.operator(reads=read_from(BIDS), writes=RESULTS)(self.function)
        sink(pipeline, self.writes)
        return pipeline


def _row_query(
    name: str, summary: str, *, operator: str, reads: str, writes: str, sql: str
) -> "Callable[[FrameFunction], FrameFunction]":
    """Register a function as the query `name`; `sql` gives the expected rows."""

    def decorate(function: "FrameFunction") -> "FrameFunction":
        function.__name__ = operator  # operators are named after their functions
        query = RowQuery(name=name, summary=summary, reads=reads, writes=writes, function=function)
        truths: dict[Variant, QueryTruth] = {"reference": QueryTruth(sql=sql)}
        ROW_QUERIES[name] = NexmarkQuery(name=name, build=query.build, truths=truths)
        return function

    return decorate


@_row_query(
    "q0",
    "bids as they are",
    operator="mapper",
    reads=_PADDED,
    writes=_PADDED,
    sql='select auction, bidder, price, "dateTime", extra from bids',
)
def pass_on(bids: "DataFrame") -> "DataFrame":
    """Query 0: pass bids on unchanged, which shows what the hops cost."""
    return bids.selectExpr("auction", "bidder", "price", "dateTime", "extra")


@_row_query(
    "q10",
    "bids by day and minute",
    operator="mapper",
    reads=_PADDED,
    writes=f"{_PADDED}, dt string, hm string",
    sql="""
    select auction, bidder, price, "dateTime", extra,
        strftime("dateTime", '%Y-%m-%d') as dt, strftime("dateTime", '%H:%M') as hm
    from bids
    """,
)
def add_day_and_minute(bids: "DataFrame") -> "DataFrame":
    """Query 10: add the day and the minute, by which the reference partitions its files."""
    return bids.selectExpr(
        *("auction", "bidder", "price", "dateTime", "extra"),
        "date_format(dateTime, 'yyyy-MM-dd') as dt",
        "date_format(dateTime, 'HH:mm') as hm",
    )


@_row_query(
    "q13",
    "bids looked up in a table",
    operator="join",
    reads=_TIMED,
    writes=f"{_TIMED}, value string",
    sql="""
    select auction, bidder, price, "dateTime", side.key::varchar as value
    from bids join range(10000) side(key) on auction % 10000 = side.key
    """,
)
def join_side_table(bids: "DataFrame") -> "DataFrame":
    """Query 13: join with a side table, which is sent to all replicas, so no bid has to move.

    In the reference the table is a file of numbers and their texts; here it is generated.
    """
    from pyspark.sql import functions as fn  # noqa: PLC0415 - where Spark is only

    side = bids.sparkSession.range(SIDE).selectExpr("id as key", "cast(id as string) as value")
    joined = bids.join(fn.broadcast(side), bids["auction"] % SIDE == side["key"])
    return joined.select("auction", "bidder", "price", "dateTime", "value")


@_row_query(
    "q14",
    "bids of middle size by time of day",
    operator="filter",
    reads=_PADDED,
    writes="auction long, bidder long, price decimal(23,3), bidTimeType string, "
    "dateTime timestamp, extra string, c_counts long",
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
    """,
)
def choose_by_price(bids: "DataFrame") -> "DataFrame":
    """Query 14: bids of middle size in euros, with the time of day and the letters c in `extra`."""
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


@_row_query(
    "q21",
    "bids with the number of their channel",
    operator="filter",
    reads=_LINKED,
    writes=f"{_PRICED}, channel string, channel_id string",
    sql="""
    with famous(name, number) as (
        values ('apple', '0'), ('google', '1'), ('facebook', '2'), ('baidu', '3')
    )
    select auction, bidder, price, channel,
        coalesce(number, nullif(split_part(split_part(url, '&channel_id=', 2), '&', 1), ''))
            as channel_id
    from bids left join famous on lower(channel) = name where channel_id is not null
    """,
)
def add_channel_number(bids: "DataFrame") -> "DataFrame":
    """Query 21: add the number of the channel; a bid without one is dropped."""
    result = bids.selectExpr(
        *("auction", "bidder", "price", "channel"),
        "case lower(channel) when 'apple' then '0' when 'google' then '1'"
        " when 'facebook' then '2' when 'baidu' then '3'"
        # Spark returns an empty text if nothing matches
        " else nullif(regexp_extract(url, '(&|^)channel_id=([^&]*)', 2), '') end as channel_id",
        EVENT,
    )
    return result.where("channel_id is not null")


@_row_query(
    "q22",
    "bids with the folders of their URL",
    operator="mapper",
    reads=_LINKED,
    writes=f"{_PRICED}, channel string, dir1 string, dir2 string, dir3 string",
    sql="""
    select auction, bidder, price, channel, string_split(url, '/')[4] as dir1,
        string_split(url, '/')[5] as dir2, string_split(url, '/')[6] as dir3
    from bids
    """,
)
def add_folders(bids: "DataFrame") -> "DataFrame":
    """Query 22: add the three folders of the URL."""
    folders = (f"split_part(url, '/', {part}) as dir{part - 3}" for part in (4, 5, 6))
    return bids.selectExpr("auction", "bidder", "price", "channel", *folders)
