"""Query 8: new persons who open an auction within the same window of ten seconds.

The thesis returns every auction of such a person, the reference each person once. Rows are emitted
as soon as both events are known; closed windows are deleted.
"""

import numpy as np
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
from penstock.nexmark.settings import StreamSettings
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.groups import Columns, group_rows, pc, take
from penstock.pipelines.stateful.stream_joins import join
from penstock.pipelines.stateful.totals import later_stamps, latest
from penstock.pipelines.stateful.watermark import split_late, times_of
from penstock.state.handle import State
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.schema import EVENT

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
        state=_STATE,
        state_key=_STATE_KEY,
        time="dateTime",
        delay_s=delay_s,
    )
    def meet(inputs: dict[str, pa.RecordBatch], state: State) -> Columns | None:
        """Return new persons who sell."""
        return new_sellers(inputs[people], inputs[offers], _WINDOW_US, state)

    sink(pipeline, "id long, name string, start timestamp")
    return pipeline


def _with_start(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Add the start of the window of each event."""
    starts = times_of(batch, "dateTime") // _WINDOW_US * _WINDOW_US
    return batch.append_column("start", pa.array(starts).cast(TIMESTAMP))


#: The state of `new_sellers`, by person and window: the name once the person is known, and whether
#: the person sells.
_STATE, _STATE_KEY = "name string, sells boolean, _event timestamp", "start timestamp"


def new_sellers(
    persons: pa.RecordBatch, auctions: pa.RecordBatch, window_us: int, state: State
) -> Columns | None:
    """Add rows of one slice to the state; return each new person who sells, once."""
    if (due := state.due()).num_rows:
        state.delete(due.select(["id", "start"]))
    new, offers = _in_time(persons, window_us, state), _in_time(auctions, window_us, state)
    rows = len(new) + len(offers)
    key = {
        "id": pa.concat_arrays([new["id"], offers["seller"]]),
        "start": pa.concat_arrays([new["start"], offers["start"]]),
    }
    groups = group_rows(key.values(), rows)
    if not groups.count:
        return None
    keys = take(key, groups.first)
    known = state.get(keys)
    knew = pc.and_(known["name"].is_valid(), known["sells"].fill_null(False))

    person = np.full(groups.count, -1)
    person[groups.of[: len(new)]] = np.arange(len(new))
    came = new["name"].take(pa.array(person, mask=person < 0))
    offered = np.zeros(groups.count, np.bool_)
    offered[groups.of[len(new) :]] = True
    stamps = latest(pa.concat_arrays([new[EVENT], offers[EVENT]]), groups)
    now = {
        "name": pc.coalesce(known["name"], came),
        "sells": pc.or_(known["sells"].fill_null(False), pa.array(offered)),
        EVENT: later_stamps(known[EVENT], stamps),
    }
    state.put(keys | now, pc.add(keys["start"].cast(pa.int64()), window_us))
    is_new = pc.and_not(pc.and_(now["name"].is_valid(), now["sells"]), knew)
    shown = keys | {name: now[name] for name in ("name", EVENT)}
    return take(shown, np.flatnonzero(is_new.to_numpy(zero_copy_only=False)))


def _in_time(rows: pa.RecordBatch, window_us: int, state: State) -> pa.RecordBatch:
    times = times_of(rows, "dateTime")
    return split_late(rows, times, times_of(rows, "start") + window_us, state)[0]
