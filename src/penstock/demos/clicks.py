"""Clicks: sessions of the users of a shop.

A session ends when its user is inactive for a while. A few users click much, most little. A click
has the time at which it was made; those of offline phones arrive much later, and go to a separate
topic if their session is closed.
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
#: The value of each page in cents.
CENTS = (0, 1, 4, 4, 7, 9, 5, 12, 30, 250)
#: The gap that ends a session, and the allowed delay of clicks.
GAP_S, DELAY_S = 5.0, 2.0
#: The largest delay of a click, that of an offline phone, and the share of offline phones.
_MAX_DELAY_S, _MAX_OFFLINE_S, _OFFLINE_SHARE = 1.0, 60.0, 0.02


def clicks(first: int, due: pa.Array) -> pa.Table:
    """Return clicks: user, page and time."""
    ids = first + np.arange(len(due))
    number = (USERS * draws.uniform(ids, "user") ** 3).astype(np.intp)
    offline = draws.uniform(ids, "offline") < _OFFLINE_SHARE
    way_s = np.where(offline, _MAX_OFFLINE_S, _MAX_DELAY_S) * draws.uniform(ids, "way")
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
    """Declare the pipeline; adding a click to its session takes service_s on average.

    The operator waits for the rest of that time, as it would for a profile store. With 0 it does
    not wait.
    """
    service = EmulatedService(service_s=service_s, scv=scv)
    pipeline = Pipeline("clicks", objective_s=5, summary="clicks of users, by session")
    pipeline.topic("clicks", "id long, user string, page string, at timestamp")
    pipeline.topic("valued", "id long, user string, at timestamp, cents int")

    pipeline.produces("clicks", arrivals="poisson")(clicks)

    @pipeline.batches(reads="clicks", writes="valued")
    def value(batch: pa.RecordBatch) -> pa.RecordBatch:
        """Add the value of each click."""
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
