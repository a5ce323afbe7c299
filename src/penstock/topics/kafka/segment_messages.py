"""Segments as messages: each is an Arrow IPC stream of one record batch, small enough for brokers.

A batch of a partitioned topic is sorted by slice, and says in its metadata how many rows each slice
has. So slices travel with the rows, and the partitions of Kafka do not limit them.
"""

import uuid
import zlib
from collections.abc import Iterator, Sequence
from hashlib import sha256
from typing import Any

import pyarrow as pa

from penstock.errors import DamagedError
from penstock.topics.embedded.segment import Segment, later_times, list_batches, newest_times
from penstock.topics.kafka.message_place import MessagePlace
from penstock.topics.kafka.messages import describe_place
from penstock.topics.kafka.task_transaction import KafkaTransaction
from penstock.topics.kafka.transactional_producer import Part
from penstock.topics.partition import Partition, pack
from penstock.topics.schema import EVENT, fit

#: A message ends at about this size: rows are gathered up to it, and brokers take twice as much.
TARGET_BYTES = 1 << 19
#: The largest message with more than one row, below the default limit of brokers, 1 MB.
MAX_BYTES = 900_000


class MessageSegmentWriter:
    """Writes one segment of a topic; its messages are sent by the transaction."""

    def __init__(
        self,
        topic: str,
        partitions: int,
        schema: pa.Schema,
        partition: Partition | None,
        transaction: KafkaTransaction,
    ) -> None:
        self._topic, self._schema, self._partition = topic, schema, partition
        self._number, self._transaction = transaction.index % partitions, transaction
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._values: list[bytes] = []
        self._counts: list[int] = []
        self._place: MessagePlace | None = None
        self._newest: dict[str, int] = {}
        self._digest = sha256()
        self.rows = 0
        transaction.add(self)

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows; `InputError` if they do not fit the topic's schema."""
        fitting = fit(rows, self._schema)
        for batch in list_batches(fitting) if fitting.num_rows else ():
            self._waiting.append(batch)
            self._waiting_bytes += batch.nbytes
            if self._waiting_bytes >= TARGET_BYTES:
                self._encode()
        self.rows += fitting.num_rows
        self._newest = later_times(self._newest, newest_times(fitting))

    @property
    def digest(self) -> str:
        """A digest of all rows without their event times; after `take_messages`."""
        return self._digest.hexdigest()

    def take_messages(self) -> Part:
        """Return all messages; no more rows may be written."""
        self._encode()
        return Part(self._topic, self._number, self._values)

    def place(self, offsets: Sequence[int]) -> None:
        """Take the offsets of the messages."""
        self._place = MessagePlace.of(self._number, offsets, self._counts)

    def close(self) -> Segment | None:
        """Return the segment, whose messages were delivered; None if it has no rows."""
        self._transaction.deliver()
        if not self.rows:
            return None
        crc = 0
        for value in self._values:
            crc = zlib.crc32(value, crc)
        return Segment(
            file=uuid.uuid4().hex,
            rows=self.rows,
            bytes=sum(map(len, self._values)),
            crc=crc,
            newest=self._newest,
            messages=self._place,
        )

    def abort(self) -> None:
        """Forget the rows; the transaction is aborted by whoever began it."""
        self._waiting, self._values, self._counts, self.rows = [], [], [], 0

    def _encode(self) -> None:
        """Turn the waiting rows into messages."""
        if not self._waiting:
            return
        rows = pa.concat_batches(self._waiting)
        self._waiting, self._waiting_bytes = [], 0
        for column in rows.drop_columns([EVENT]).columns:
            for buffer in pa.concat_arrays([column]).buffers():
                self._digest.update(buffer if buffer is not None else b"-")
        count = -(-rows.nbytes // TARGET_BYTES)
        step = -(-rows.num_rows // count)
        for start in range(0, rows.num_rows, step):
            self._encode_part(rows.slice(start, step))

    def _encode_part(self, rows: pa.RecordBatch) -> None:
        value = encode_batch(rows, self._partition)
        if len(value) > MAX_BYTES and rows.num_rows > 1:
            middle = rows.num_rows // 2
            self._encode_part(rows.slice(0, middle))
            self._encode_part(rows.slice(middle))
            return
        self._values.append(value)
        self._counts.append(rows.num_rows)


def encode_batch(rows: pa.RecordBatch, partition: Partition | None = None) -> bytes:
    """Return a message with these rows, sorted by slice if the topic is partitioned."""
    metadata: dict[str, bytes] = {}
    if partition is not None:
        rows, counts = partition.sort(rows)
        metadata = pack(counts)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_batch(rows, custom_metadata=metadata)
    data: bytes = sink.getvalue().to_pybytes()
    return data


def decode_batch(topic: str, value: bytes, rows: int, place: str) -> tuple[pa.RecordBatch, Any]:
    """Return the rows of a message and their metadata; `DamagedError` names the place."""
    try:
        reader = pa.ipc.open_stream(value)
        batch, metadata = reader.read_next_batch_with_custom_metadata()
    except (pa.ArrowInvalid, OSError, StopIteration) as error:
        problem = f"is no message of Penstock: {error or type(error).__name__}"
        raise DamagedError(topic, place, problem) from None
    if batch.num_rows != rows:
        raise DamagedError(topic, place, f"has {batch.num_rows} rows, expected {rows}")
    return batch, metadata


def describe_message(topic: str, partition: int, offset: int) -> str:
    """Return the place of a message inside an error about its topic."""
    return describe_place(topic, partition, offset).removeprefix("topic ")


def list_values(values: Iterator[bytes]) -> tuple[int, int]:
    """Return size and checksum of messages."""
    size = crc = 0
    for value in values:
        size += len(value)
        crc = zlib.crc32(value, crc)
    return size, crc
