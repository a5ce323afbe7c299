"""Rows of a topic as messages of Kafka; its commits, which name them, stay in a directory."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import DamagedError, PenstockError
from penstock.topics.embedded.segment import Segment, select_columns
from penstock.topics.kafka.cluster import KafkaCluster
from penstock.topics.kafka.message_place import MessagePlace
from penstock.topics.kafka.message_reader import find_message_reader
from penstock.topics.kafka.segment_messages import (
    MessageSegmentWriter,
    decode_batch,
    describe_message,
    list_values,
)
from penstock.topics.kafka.task_transaction import KafkaTransaction
from penstock.topics.kafka.topic_setup import delete_messages
from penstock.topics.partition import Partition, shares, unpack
from penstock.topics.port import SegmentWriter, Transaction

#: The folder in the directory of a topic for notes of its producers.
NOTES = "notes"


@dataclass(frozen=True, slots=True, kw_only=True)
class MessagePiece:
    """Rows [from_row, to_row) of one segment, readable in any process."""

    #: The topic, and its name in Kafka.
    name: str
    topic: str
    cluster: KafkaCluster
    segment: Segment
    from_row: int
    to_row: int
    #: When the rows were committed.
    at: float
    #: The schema of the topic, if the segment may lack some columns; None if not.
    schema: pa.Schema | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.to_row - self.from_row

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        for place, batch, _, low, high in self._read_messages():
            yield self._select(place, batch, columns).slice(low, high - low)

    def read_slices(self, slices: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (slice, rows of it) for some slices of a partitioned topic."""
        for place, batch, metadata, low, high in self._read_messages():
            try:
                counts = unpack(metadata)
            except ValueError as wrong:
                raise DamagedError(self.name, place, str(wrong)) from None
            whole = self._select(place, batch, None)
            for number, first, rows in shares(counts, low, high, slices):
                yield number, whole.slice(first, rows)

    def _read_messages(self) -> Iterator[tuple[str, pa.RecordBatch, Any, int, int]]:
        """Yield (place, rows, metadata, first and last row that are wanted) of each message."""
        where = place_of(self.segment)
        parts = list(where.locate(self.from_row, self.to_row))
        reader = find_message_reader(self.cluster.address, self.cluster.settings)
        values = reader.read(self.topic, where.partition, [part.offset for part in parts])
        for part, value in zip(parts, values, strict=True):
            place = describe_message(self.topic, where.partition, part.offset)
            batch, metadata = decode_batch(self.name, value, part.rows, place)
            yield place, batch, metadata, part.low, part.high

    def _select(
        self, place: str, batch: pa.RecordBatch, columns: Sequence[str] | None
    ) -> pa.RecordBatch:
        try:
            return select_columns(batch, columns, self.schema)
        except (ValueError, TypeError) as wrong:
            raise DamagedError(self.name, place, str(wrong)) from None


class MessageRows:
    """The segments of one topic in Kafka."""

    def __init__(self, directory: Path, cluster: KafkaCluster, topic: str, partitions: int) -> None:
        self._directory, self._cluster = directory, cluster
        self._topic, self._partitions = topic, partitions

    def write(
        self, schema: pa.Schema, partition: Partition | None, transaction: Transaction | None
    ) -> SegmentWriter:
        """Start a segment in a transaction."""
        if not isinstance(transaction, KafkaTransaction):
            raise PenstockError(f"topic {self._directory.name}: rows in Kafka need a transaction")
        return MessageSegmentWriter(self._topic, self._partitions, schema, partition, transaction)

    def find(
        self, segment: Segment, from_row: int, to_row: int, at: float, schema: pa.Schema | None
    ) -> MessagePiece:
        """Return rows [from_row, to_row) of a segment."""
        return MessagePiece(
            name=self._directory.name,
            topic=self._topic,
            cluster=self._cluster,
            segment=segment,
            from_row=from_row,
            to_row=to_row,
            at=at,
            schema=schema,
        )

    def sync(self, segments: Sequence[Segment]) -> None:
        """Do nothing: the brokers have committed the messages."""

    def remove(self, segments: Sequence[Segment]) -> None:
        """Let the brokers remove the messages of segments, and all before them.

        A topic has one writer, so no later segment is before them. Brokers that do not answer
        remove them with the next ones.
        """
        ends: dict[int, int] = {}
        for place in map(place_of, segments):
            ends[place.partition] = max(place.end, ends.get(place.partition, 0))
        delete_messages(self._cluster, self._topic, ends)

    def verify(self, segment: Segment) -> pa.Schema:
        """Read a segment completely and return its schema; `DamagedError` if it is damaged."""
        piece, where = self.find(segment, 0, segment.rows, 0.0, None), place_of(segment)
        offsets = [part.offset for part in where.locate(0, segment.rows)]
        reader = find_message_reader(self._cluster.address, self._cluster.settings)
        place = describe_message(self._topic, where.partition, where.start)
        try:
            size, crc = list_values(reader.read(self._topic, where.partition, offsets))
        except PenstockError as error:
            raise DamagedError(self._directory.name, place, str(error)) from None
        if (size, crc) != (segment.bytes, segment.crc):
            problem = (
                f"and the following were altered: checksum {crc:08x}, {segment.crc:08x} wanted"
            )
            raise DamagedError(self._directory.name, place, problem)
        schemas = {batch.schema for batch in piece.read()}
        if len(schemas) != 1:
            raise DamagedError(self._directory.name, place, "and the following differ in columns")
        return schemas.pop()

    def begin(self, writer: str, batch: int) -> KafkaTransaction:
        """Begin a transaction of a writer that is no task."""
        name = f"{self._topic}-{writer}"
        return KafkaTransaction(self._cluster, name, batch, self._directory / NOTES / writer)


def place_of(segment: Segment) -> MessagePlace:
    """Return where the messages of a segment are."""
    if segment.messages is None:
        raise PenstockError(f"segment {segment.file} has no messages in Kafka")
    return segment.messages
