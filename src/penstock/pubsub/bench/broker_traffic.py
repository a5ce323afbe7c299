"""Traffic of the benchmarks through a broker: requests go in, times of notices come out."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.pubsub.arrays import Doubles
from penstock.pubsub.topic_broker import TopicBroker
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT

#: Requests in a commit of subscriptions.
_SUBSCRIBE_ROWS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class NoticeTimes:
    """When each publication was due, and when its notice was committed, in seconds."""

    due_s: Doubles
    done_s: Doubles

    @property
    def delays_s(self) -> Doubles:
        """From due to committed."""
        return self.done_s - self.due_s

    def due_from(self, begin_s: float) -> "NoticeTimes":
        """Return those that were due at this time or later."""
        is_due = self.due_s >= begin_s
        return NoticeTimes(due_s=self.due_s[is_due], done_s=self.done_s[is_due])


def subscribe_all(broker: TopicBroker, requests: pa.Table, wait: Callable[[], None]) -> None:
    """Append requests for subscriptions; wait until each is acknowledged."""
    for start in range(0, len(requests), _SUBSCRIBE_ROWS):
        broker.append(requests.slice(start, _SUBSCRIBE_ROWS))
    position = acknowledged = 0
    while acknowledged < len(requests):
        wait()
        acks, position = broker.read_acks(position)
        acknowledged += len(acks)


def publish_due(broker: TopicBroker, requests: pa.Table, due_at: Doubles | float) -> None:
    """Append publications that were due at these times, or all at the same time."""
    times = np.broadcast_to(np.asarray(due_at, np.float64), len(requests))
    events = pa.array(np.round(times * 1e6).astype(np.int64)).cast(TIMESTAMP)
    broker.append(requests.append_column(EVENT, events))


def read_notice_times(notices: Topic, position: int, origin_s: float = 0.0) -> NoticeTimes:
    """Return the times of all notices from a position on, counted from an origin."""
    due, done = [np.empty(0)], [np.empty(0)]
    for commit in notices.commits(position, notices.refresh()):
        for rows in notices.read(commit.first, commit.end, [EVENT]):
            due.append(rows[EVENT].cast(pa.int64()).to_numpy() / 1e6 - origin_s)
            done.append(np.full(rows.num_rows, commit.at - origin_s))
    return NoticeTimes(due_s=np.concatenate(due), done_s=np.concatenate(done))
