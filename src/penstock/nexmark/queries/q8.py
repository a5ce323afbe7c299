"""Query 8: who is new and sells at once, within a window of ten seconds.

The thesis tells of every auction of such a person, the reference of the person, once. Either is
told as soon as both are there; what is closed is forgotten.
"""

import pyarrow as pa

from penstock.nexmark.event_order import AUCTIONS, PERSONS
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
from penstock.nexmark.queries.new_sellers import STATE, STATE_KEY, newcomers
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.groups import Columns
from penstock.pipelines.stateful.stream_joins import join
from penstock.pipelines.stateful.watermark import times_of
from penstock.state.handle import State
from penstock.topics.ddl import TIMESTAMP

WINDOW_S = 10
_WINDOW_US = WINDOW_S * 1_000_000
PEOPLE = "id long, name string, start timestamp, dateTime timestamp"
OFFERS = "seller long, reserve long, start timestamp, dateTime timestamp"
_PAIRS = """
    from persons p join auctions a on p.id = a.seller
        and epoch_us(p."dateTime") // 10000000 = epoch_us(a."dateTime") // 10000000
"""
TRUTHS: dict[Variant, QueryTruth] = {
    "thesis": QueryTruth(sql="select p.id, p.name, a.reserve" + _PAIRS),
    "reference": QueryTruth(
        sql="""select distinct p.id, p.name,
        make_timestamp(epoch_us(p."dateTime") // 10000000 * 10000000) as start"""
        + _PAIRS
    ),
}


def build(
    variant: Variant = "thesis", setting: StreamSettings | None = None, delay_s: float = DELAY_S
) -> Pipeline:
    """Declare the pipeline."""
    pipeline = begin("q8", variant, "new persons who sell at once")
    setting = setting or usual(variant)
    sources(pipeline, setting, {PERSONS: PEOPLE, AUCTIONS: OFFERS}, delay_s, _with_start)
    people, offers = read_from(PERSONS), read_from(AUCTIONS)
    if variant == "thesis":
        # two in the same window are never further apart than it is long
        pairs = join(
            people,
            offers,
            on={"id": "seller", "start": "start"},
            within_s=WINDOW_S,
            time="dateTime",
        )
        pipeline.sliced(reads=[people, offers], writes=RESULTS, name="join", delay_s=delay_s)(pairs)
        sink(pipeline, "id long, name string, reserve long")
        return pipeline

    pipeline.topic(RESULTS, "id long, name string, start timestamp")

    @pipeline.sliced(
        reads=[people, offers],
        writes=RESULTS,
        name="join",
        key={people: "id", offers: "seller"},
        state=STATE,
        state_key=STATE_KEY,
        time="dateTime",
        delay_s=delay_s,
    )
    def meet(inputs: dict[str, pa.RecordBatch], state: State) -> Columns | None:
        """Tell of newcomers who sell."""
        return newcomers(inputs[people], inputs[offers], _WINDOW_US, state)

    sink(pipeline, "id long, name string, start timestamp")
    return pipeline


def _with_start(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Say in which window each event is."""
    starts = times_of(batch, "dateTime") // _WINDOW_US * _WINDOW_US
    return batch.append_column("start", pa.array(starts).cast(TIMESTAMP))
