"""Clicks: what users of a shop do, put together to sessions.

A session ends when its user does nothing for a while. A few users click much, most little. A
click counts from when it was made; those of phones that were offline arrive long after, and go
to a topic of their own when the session that they belong to is closed.
"""

import numpy as np
import pyarrow as pa

from penstock.demos.support.emulated_service import EmulatedService, with_service
from penstock.pipelines import record_draws as draws
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.session_windows import sessions
from penstock.pipelines.text_columns import choose, join, pc, word_list

USERS = 1000
PAGES = word_list("home search books music garden tools toys shoes basket pay")
#: What a page is worth to the shop, in cents, in the order of pages.
CENTS = (0, 1, 4, 4, 7, 9, 5, 12, 30, 250)
#: Seconds without a click that end a session, and seconds that clicks may be on their way.
GAP_S, DELAY_S = 5.0, 2.0
#: A click takes up to a second, but some come from phones that were offline for up to a minute.
_ON_ITS_WAY_S, _OFFLINE_S, _OFFLINE = 1.0, 60.0, 0.02


def clicks(first: int, due: pa.Array) -> pa.Table:
    """Return the rows of clicks: who saw which page, and when that was."""
    ids = first + np.arange(len(due))
    number = (USERS * draws.uniform(ids, "user") ** 3).astype(np.intp)
    offline = draws.uniform(ids, "offline") < _OFFLINE
    way_s = np.where(offline, _OFFLINE_S, _ON_ITS_WAY_S) * draws.uniform(ids, "way")
    at = due.cast(pa.int64()).to_numpy() - (way_s * 1e6).astype(np.int64)
    return pa.table(
        {
            "id": ids,
            "user": join("user ", pc.cast(pa.array(number), pa.string())),
            "page": choose(PAGES, draws.pick(ids, "page", len(PAGES))),
            "at": pa.array(at).cast(due.type),
        }
    )


def build(service_s: float = 0.5, scv: float = 0.1) -> Pipeline:
    """Declare the pipeline; to add a click to its session takes service_s on average.

    That stage waits for what is left of it after its real work, as it would for a store of
    profiles. With 0 a click takes what it takes.
    """
    service = EmulatedService(service_s=service_s, scv=scv)
    pipeline = Pipeline("clicks", objective_s=5, summary="clicks of users, by session")
    pipeline.topic("clicks", "id long, user string, page string, at timestamp")
    pipeline.topic("valued", "id long, user string, at timestamp, cents int")

    pipeline.produces("clicks", arrivals="poisson")(clicks)

    @pipeline.batches(reads="clicks", writes="valued")
    def value(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Say what each click is worth."""
        page = pc.index_in(batch["page"], value_set=pa.array(PAGES))
        cents = pa.array(CENTS, pa.int32()).take(page)
        return batch.drop_columns("page").append_column("cents", cents)

    waiting = with_service(
        sessions(by="user", gap_s=GAP_S, sums="cents", time="at"), service, "session"
    )
    pipeline.sliced(
        reads="valued", writes="sessions", name="session", delay_s=DELAY_S, late_to="late"
    )(waiting)
    return pipeline


PIPELINE = build()
