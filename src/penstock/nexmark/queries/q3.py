"""Query 3: persons of certain states who sell.

Persons are filtered by state and joined with their auctions, whichever comes first. In the
originals both wait without limit, or for some processing time. Here they wait for a fixed event
time: the output is the same at every speed, and the state stays bounded.
"""

import pyarrow as pa

from penstock.nexmark.event_order import AUCTIONS, PERSONS
from penstock.nexmark.queries.common import (
    DELAY_S,
    RESULTS,
    QueryTruth,
    Variant,
    begin,
    chunk_rows,
    read_from,
    sink,
    sources,
    usual,
)
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.stream_joins import join
from penstock.pipelines.text_columns import pc

STATES, CATEGORY = ("OR", "ID", "CA"), 10
#: Seconds that a person and an auction wait for each other: the thesis' time-to-live, and that
#: of the reference's first version, which the one in SQL has lost.
WAITS_S: dict[Variant, float] = {"thesis": 300.0, "reference": 600.0}
PEOPLE = "id long, name string, city string, state string, dateTime timestamp"
OFFERS = "id long, seller long, category long, dateTime timestamp"
_SQL = """
    select p.name, p.city, p.state, a.id
    from auctions a join persons p on a.seller = p.id
    where p.state in ('OR', 'ID', 'CA')
        and abs(epoch_us(a."dateTime") - epoch_us(p."dateTime")) <= {wait}
"""
TRUTHS: dict[Variant, QueryTruth] = {
    "thesis": QueryTruth(sql=_SQL.format(wait=300_000_000)),
    "reference": QueryTruth(sql=_SQL.format(wait=600_000_000) + "and a.category = 10"),
}


def build(
    variant: Variant = "thesis", setting: StreamSettings | None = None, delay_s: float = DELAY_S
) -> Pipeline:
    """Declare the pipeline; only the reference chooses auctions, too."""
    pipeline = begin("q3", variant, "who sells in certain states")
    setting = setting or usual(variant)
    sources(pipeline, setting, {PERSONS: PEOPLE, AUCTIONS: OFFERS}, delay_s)
    pipeline.topic("persons-chosen", PEOPLE)
    few = chunk_rows(PERSONS, setting, delay_s)

    @pipeline.batches(reads=read_from(PERSONS), writes="persons-chosen", chunk_rows=few)
    def filter(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Keep persons who live in one of the states."""
        return batch.filter(pc.is_in(batch["state"], value_set=pa.array(STATES)))

    offers = read_from(AUCTIONS)
    if variant == "reference":
        offers = "auctions-chosen"
        pipeline.topic(offers, OFFERS)
        few = chunk_rows(AUCTIONS, setting, delay_s)

        @pipeline.batches(reads=read_from(AUCTIONS), writes=offers, chunk_rows=few)
        def category(batch: pa.RecordBatch) -> pa.RecordBatch:
            """Keep auctions of the category."""
            return batch.filter(pc.equal(batch["category"], CATEGORY))

    sell = join(
        offers,
        "persons-chosen",
        on={"seller": "id"},
        within_s=WAITS_S[variant],
        time="dateTime",
    )
    pipeline.sliced(reads=[offers, "persons-chosen"], writes=RESULTS, name="join", delay_s=delay_s)(
        sell
    )
    sink(pipeline, "name string, city string, state string, id long")
    return pipeline
