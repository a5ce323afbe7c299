"""Query 5: how many bids auctions get in sliding windows; in the reference, which get the most."""

from penstock.nexmark.event_order import BIDS
from penstock.nexmark.queries.common import (
    DELAY_S,
    RESULTS,
    QueryTruth,
    Variant,
    begin,
    read_from,
    sink,
    sources,
    usual,
)
from penstock.nexmark.queries.largest_counts import STATE, STATE_KEY, largest
from penstock.nexmark.queries.window_closing import COMPLETE, announcing
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.ready_function import Ready
from penstock.pipelines.stateful.time_windows import windows

#: Size of a window and how often one begins, in seconds.
WINDOWS_S: dict[Variant, tuple[float, float]] = {"thesis": (300, 60), "reference": (10, 2)}
COLUMNS = "auction long, start timestamp, end timestamp, n long"
_COUNTED = """
    with slid as (
        select auction, unnest(
            range(epoch_us("dateTime") // {every} - {size} // {every} + 1,
                epoch_us("dateTime") // {every} + 1)
        ) * {every} as start
        from bids
    ), counted as (
        select auction, start, start + {size} as "end", count(*) as n from slid group by all
    )
    select auction, make_timestamp(start) as start, make_timestamp("end") as "end", n
    from counted where "end" <= $closed
"""
TRUTHS: dict[Variant, QueryTruth] = {
    "thesis": QueryTruth(
        sql=_COUNTED.format(size=300_000_000, every=60_000_000), closed_by="window"
    ),
    "reference": QueryTruth(
        sql=_COUNTED.format(size=10_000_000, every=2_000_000)
        + "qualify n = max(n) over (partition by start)",
        closed_by="largest",
    ),
}


def build(
    variant: Variant = "thesis", setting: StreamSettings | None = None, delay_s: float = DELAY_S
) -> Pipeline:
    """Declare the pipeline; the thesis counts only."""
    pipeline = begin("q5", variant, "bids on auctions in sliding windows")
    setting = setting or usual(variant)
    sources(pipeline, setting, {BIDS: "auction long, dateTime timestamp"}, delay_s)
    size_s, every_s = WINDOWS_S[variant]
    counted = RESULTS if variant == "thesis" else "counts"
    count: Ready = windows(by="auction", size_s=size_s, every_s=every_s, time="dateTime")
    if variant == "reference":
        count = announcing(count)
    pipeline.sliced(reads=read_from(BIDS), writes=counted, name="window", delay_s=delay_s)(count)
    if variant == "reference":
        pipeline.topic(RESULTS, COLUMNS)
        pipeline.sliced(
            reads=counted,
            writes=RESULTS,
            key="start",
            state=STATE,
            state_key=STATE_KEY,
            time=COMPLETE.name,
        )(largest)
    sink(pipeline, COLUMNS)
    return pipeline
