"""Query 11: bids of each bidder in sessions with a gap of ten seconds.

The thesis also emits a session after every 100,000 bids, which never happens at its rates; that is
left out.
"""

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
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.session_windows import sessions

GAP_S = 10
#: Bids that are exactly a gap apart belong together, and until then one may still come.
_TRUTH = QueryTruth(
    sql="""
    with timed as (
        select bidder, epoch_us("dateTime") as t from bids
    ), steps as (
        select *, coalesce(t - lag(t) over (partition by bidder order by t) > 10000000, true) as new
        from timed
    ), numbered as (
        select *, sum(new::int) over (partition by bidder order by t) as session from steps
    )
    select bidder, make_timestamp(min(t)) as start, make_timestamp(max(t) + 10000000) as "end",
        count(*) as n
    from numbered group by bidder, session having max(t) + 10000000 < $closed
    """,
    closed_by="window",
)
TRUTHS: dict[Variant, QueryTruth] = {"thesis": _TRUTH, "reference": _TRUTH}


def build(
    variant: Variant = "thesis", setting: StreamSettings | None = None, delay_s: float = DELAY_S
) -> Pipeline:
    """Declare the pipeline; the variants differ in whether some bidders are hot."""
    pipeline = begin("q11", variant, "bids of bidders, by session")
    setting = setting or usual(variant)
    sources(pipeline, setting, {BIDS: "bidder long, dateTime timestamp"}, delay_s)
    together = sessions(by="bidder", gap_s=GAP_S, time="dateTime", touching=True)
    pipeline.sliced(reads=read_from(BIDS), writes=RESULTS, name="window", delay_s=delay_s)(together)
    sink(pipeline, "bidder long, start timestamp, end timestamp, n long")
    return pipeline
