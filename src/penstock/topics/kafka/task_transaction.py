"""One attempt at writing the rows of a batch: all its segments in one transaction of Kafka.

An attempt saves what it reports in a file, a note, and then commits its messages with a receipt
that names the note. A later attempt at the same batch finds both and writes nothing.
"""

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

from penstock.errors import InputError, OutageError
from penstock.files.atomic import replace, sync_directory
from penstock.topics.kafka.cluster import KafkaCluster
from penstock.topics.kafka.transactional_producer import (
    FencedError,
    Part,
    Receipt,
    TaskId,
    TransactionalProducer,
)
from penstock.topics.kafka.transactional_writer import keep_producer, take_producer

SUFFIX = ".note"


class MessageSource(Protocol):
    """A segment that is being written."""

    @property
    def digest(self) -> str:
        """A digest of its rows, after `take_messages`."""

    def take_messages(self) -> Part:
        """Return all its messages; it gets no more rows."""

    def place(self, offsets: Sequence[int]) -> None:
        """Take the offsets of its messages."""


class KafkaTransaction:
    """The transaction of one task of a batch, or of a producer's batch."""

    def __init__(
        self, cluster: KafkaCluster, writer: str, batch: int, notes: Path, index: int = 0
    ) -> None:
        """`writer` and `index` name the task; its notes are in a directory."""
        self._cluster, self.batch, self.index = cluster, batch, index
        self._task = TaskId(f"{cluster.run}-{writer}", index)
        self._notes = notes
        self._sources: list[MessageSource] = []
        self._producer: TransactionalProducer | None = None
        self._messages = 0
        self._is_sent = False
        #: What an earlier attempt at this batch has committed; None if none has.
        self.note = self._read_note()

    def add(self, source: MessageSource) -> None:
        """Add a segment."""
        self._sources.append(source)

    def digest(self) -> str:
        """Return a digest of all rows without their event times, and of their topics."""
        parts = [f"{source.take_messages().topic}:{source.digest}" for source in self._sources]
        return "/".join(sorted(parts))

    def deliver(self) -> None:
        """Send the messages of all segments, and tell each its offsets; once."""
        if self._is_sent:
            return
        self._is_sent = True
        parts = [source.take_messages() for source in self._sources]
        self._messages = sum(len(part.values) for part in parts)
        if not self._messages:
            return
        with _outages(self._task):
            for source, offsets in zip(self._sources, self._send(parts), strict=True):
                source.place(offsets)

    def commit(self, note: bytes) -> None:
        """Save the note, and commit the messages with a receipt that names it."""
        if not self._messages:
            self._release()
            return
        assert self._producer is not None
        path = self._notes / f"{self.index:05d}-{self.batch:020d}-{uuid.uuid4().hex[:8]}{SUFFIX}"
        self._notes.mkdir(parents=True, exist_ok=True)
        replace(path, note)
        sync_directory(self._notes)  # it is on disk before a receipt names it
        receipt = Receipt(batch=self.batch, messages=self._messages, note=path.name)
        with _outages(self._task):
            self._producer.commit(receipt)
        self._release()
        self._remove_notes(path)

    def abort(self) -> None:
        """Leave what is open to the next attempt, which ends it; nothing after a commit."""
        if self._producer is not None:
            if self._is_sent and self._messages:
                self._producer.abort()
                self._producer.close()
            else:
                self._release()
            self._producer = None

    def _read_note(self) -> bytes | None:
        """Look for an earlier attempt; the producer takes over what that has begun."""
        with _outages(self._task):
            self._producer = take_producer(
                self._cluster.receipts, self._cluster.settings, self._task
            )
            receipt = self._producer.read_receipt()
        if receipt is None or receipt.batch < self.batch:
            return None
        if receipt.batch > self.batch:
            raise self._refusal(f"batch {receipt.batch} was written, but batch {self.batch} begins")
        with suppress(FileNotFoundError):
            return (self._notes / receipt.note).read_bytes()
        raise self._refusal(f"batch {receipt.batch} was written, but {receipt.note} is missing")

    def _send(self, parts: Sequence[Part]) -> list[list[int]]:
        assert self._producer is not None
        try:
            return self._producer.send_parts(parts)
        except FencedError:
            # an attempt elsewhere has ended without a receipt: take the id back, once
            self._producer.close()
            self._producer = TransactionalProducer(
                self._cluster.receipts, self._cluster.settings, self._task
            )
            if self._producer.last == self.batch:
                raise
            return self._producer.send_parts(parts)

    def _release(self) -> None:
        if self._producer is not None:
            cluster = self._cluster
            keep_producer(cluster.receipts, cluster.settings, self._task, self._producer)
        self._producer = None

    def _remove_notes(self, kept: Path) -> None:
        """Remove the notes of earlier batches: their records are on disk."""
        for path in self._notes.glob(f"{self.index:05d}-*{SUFFIX}"):
            if path != kept and read_note_batch(path) < self.batch:
                path.unlink(missing_ok=True)

    def _refusal(self, problem: str) -> InputError:
        hint = (
            "the run directory is older than the rows in Kafka: restore a newer copy, or begin"
            " another run with --out DIR and another prefix"
        )
        return InputError(f"transaction {self._task}", problem, hint)


def read_note_batch(path: Path) -> int:
    """Return the batch of a note."""
    return int(path.name.split("-")[1])


@contextmanager
def _outages(task: TaskId) -> Iterator[None]:
    """Turn errors of connections into `OutageError`, which is no fault of a function."""
    try:
        yield
    except (ConnectionError, TimeoutError) as error:
        raise OutageError(str(task), str(error)) from error
