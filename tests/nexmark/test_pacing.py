"""Event times of a run."""

import numpy as np
import pyarrow as pa
import pytest

from penstock.nexmark.event_order import KINDS
from penstock.nexmark.queries import QUERIES
from penstock.nexmark.queries.declaration import settings_for
from penstock.nexmark.settings import BASE_MS
from penstock.topics.schedule import schedule_of
from penstock.workloads.workload import Workload


@pytest.mark.parametrize("query", ["q1", "q3"])
def test_events_happen_when_they_are_due(query: str) -> None:
    load = Workload.of_points([0, 20, 40], [50, 400, 100])
    setting = settings_for(query, "thesis", load)
    assert not setting.hot
    for feed in QUERIES[query].build("thesis", setting).feeds.values():
        due_s = schedule_of(load * feed.share, feed.arrivals, 1).take(load.duration_s, 1 << 20)
        assert len(due_s) == pytest.approx(load.total_records * feed.share, abs=1)
        made = feed.make(0, pa.array((due_s * 1e6).astype(np.int64), pa.timestamp("us", "UTC")))
        at_s = made["dateTime"].cast(pa.int64()).to_numpy() / 1e6 - BASE_MS / 1e3
        # kinds take turns: an event is at most two rounds away from when it would be due
        round_s = 2 * sum(KINDS[name].share for name in QUERIES[query].build().feeds) / 50
        assert np.abs(at_s - due_s)[:-3].max() < round_s
