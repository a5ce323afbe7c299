"""New persons who sell something within a window, each told once, as soon as it is known."""

import numpy as np
import pyarrow as pa

from penstock.pipelines.stateful.groups import Columns, group_rows, pc, take
from penstock.pipelines.stateful.totals import later_stamps, latest
from penstock.pipelines.stateful.watermark import split_late, times_of
from penstock.state.handle import State
from penstock.topics.schema import EVENT

#: Of a person and a window: the name once the person came, and whether something was offered.
STATE, STATE_KEY = "name string, sells boolean, _event timestamp", "start timestamp"


def newcomers(
    persons: pa.RecordBatch, auctions: pa.RecordBatch, window_us: int, state: State
) -> Columns | None:
    """Add rows of one slice to what is known, and return those who now are new and sell."""
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
    told = pc.and_not(pc.and_(now["name"].is_valid(), now["sells"]), knew)
    shown = keys | {name: now[name] for name in ("name", EVENT)}
    return take(shown, np.flatnonzero(told.to_numpy(zero_copy_only=False)))


def _in_time(rows: pa.RecordBatch, window_us: int, state: State) -> pa.RecordBatch:
    times = times_of(rows, "dateTime")
    return split_late(rows, times, times_of(rows, "start") + window_us, state)[0]
