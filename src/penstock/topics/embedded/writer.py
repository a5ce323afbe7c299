"""The writer of a topic: one at a time, each append durable when it returns."""

import math
import time
from collections.abc import Callable
from types import TracebackType

import pyarrow as pa

from penstock.errors import FullError, TopicError
from penstock.files.lock import Lock
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.embedded.retention import remove_leftovers, trim
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT

LOCK = "lock"
_TRIM_EVERY_S = 1.0


class TopicWriter:
    """Appends tables to a topic while holding the topic's lock."""

    def __init__(self, topic: Topic, name: str, clock: Callable[[], float] = time.time) -> None:
        self.topic, self.name, self._clock = topic, name, clock
        self._lock = Lock(topic.directory / LOCK)
        self._trimmed_at = -math.inf

    def append(self, table: pa.Table) -> int:
        """Append rows and return the topic's new end; all rows before it survive a power failure.

        Rows without `_event` get the current time. If it raises, no row was appended; retention
        runs first because it may find damage. (If only the last sync fails, the rows are
        appended, as the topic's end shows.)
        """
        if self._lock.fileno() < 0:
            raise TopicError(self.topic.name, "is not locked: write inside `with TopicWriter(...)`")
        now = self._clock()
        if now >= self._trimmed_at + _TRIM_EVERY_S:
            self._trimmed_at = now
            trim(self.topic, now)
        if EVENT not in table.schema.names:
            due = pa.scalar(round(now * 1e6), TIMESTAMP)
            table = table.append_column(EVENT, pa.repeat(due, len(table)))
        self._publish(table, now)
        return self.topic.end

    def _publish(self, table: pa.Table, now: float) -> None:
        self.topic.refresh()
        last = self.topic.last_batch(self.name)
        batch = 0 if last is None else last + 1
        segment = self.topic.segment_writer()
        published = False
        try:
            segment.write(table)
            written = segment.close()
            published = self.topic.publish(self.name, batch, [written] if written else [], now)
        except BaseException as error:
            self.topic.refresh()
            published = self.topic.last_batch(self.name) == batch
            if isinstance(error, FullError):
                self._trimmed_at = -math.inf
            raise
        finally:
            if not published:
                segment.abort()
        if not published:
            raise TopicError(self.topic.name, f"another process publishes as {self.name!r}")

    def __enter__(self) -> "TopicWriter":
        self._lock.acquire()
        try:
            remove_leftovers(self.topic, self._clock())
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._lock.release()
