"""The writer of a topic: one at a time, each append durable when it returns."""

import json
import math
import time
from collections.abc import Callable
from types import TracebackType

import pyarrow as pa

from penstock.errors import FullError, OutageError, TopicError
from penstock.files.lock import Lock
from penstock.topics.ddl import TIMESTAMP
from penstock.topics.embedded.retention import remove_leftovers, trim
from penstock.topics.embedded.segment import Segment
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT

LOCK = "lock"
_TRIM_EVERY_S = 1.0
#: For how long a writer tries again while Kafka does not answer.
OUTAGE_S = 300.0


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
        deadline, is_repeated = time.monotonic() + OUTAGE_S, False
        while not self._try_to_publish(table, now, is_repeated=is_repeated):
            if time.monotonic() > deadline:
                raise OutageError(self.topic.name, f"no answer from Kafka in {OUTAGE_S:g} s")
            is_repeated = True
            time.sleep(1)

    def _try_to_publish(self, table: pa.Table, now: float, *, is_repeated: bool) -> bool:
        """Publish rows; False if Kafka does not answer now, which files never do."""
        try:
            self._publish_once(table, now, is_repeated=is_repeated)
        except OutageError:
            return False
        return True

    def _publish_once(self, table: pa.Table, now: float, *, is_repeated: bool) -> None:
        self.topic.refresh()
        batch = self._next_batch()
        transaction = self.topic.begin(self.name, batch)
        if transaction.note is not None:  # an attempt whose answer was lost has written
            self._complete(batch, transaction.note, now)
            transaction.abort()
            if is_repeated:
                return
            batch += 1
            transaction = self.topic.begin(self.name, batch)
        segment = self.topic.segment_writer(transaction)
        published = False
        try:
            segment.write(table)
            transaction.deliver()
            written = segment.close()
            if written is not None:
                transaction.commit(json.dumps(written.to_json()).encode())
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
            transaction.abort()
        if not published:
            raise TopicError(self.topic.name, f"another process publishes as {self.name!r}")

    def _next_batch(self) -> int:
        last = self.topic.last_batch(self.name)
        return 0 if last is None else last + 1

    def _complete(self, batch: int, note: bytes, now: float) -> None:
        """Publish rows that a killed writer has committed to Kafka, but not to the topic."""
        self.topic.publish(self.name, batch, [Segment.from_json(json.loads(note))], now)

    def __enter__(self) -> "TopicWriter":
        self._lock.acquire()
        try:
            remove_leftovers(self.topic, self._clock())
            self.topic.refresh()
            transaction = self.topic.begin(self.name, batch := self._next_batch())
            if transaction.note is not None:
                self._complete(batch, transaction.note, self._clock())
            transaction.abort()
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
