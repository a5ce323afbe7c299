"""Reads ranges of offsets; one consumer per process and topic, kept between ranges."""

import os
import time
from collections.abc import Iterator
from typing import Any

from penstock.topics.kafka.address import KafkaAddress
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.clients import (
    REQUEST_S,
    load_client,
    make_consumer,
    missing_topic,
    translate_error,
)
from penstock.topics.kafka.messages import MessageBlock, describe_place
from penstock.topics.kafka.offset_ranges import PartitionRange
from penstock.topics.kafka.partition_offsets import COMMITTED
from penstock.topics.kafka.source_offsets import lost_offsets

#: Messages of one block.
MAX_MESSAGES = 10_000
#: A call waits for all messages it asks for or this long; holes in a range cost up to one wait.
WAIT_S = 0.05
#: Without a message for this long, a range is given up.
PATIENCE_S = 60.0


class RangeReader:
    """A consumer without a group: it reads what it is asked for."""

    def __init__(
        self,
        address: KafkaAddress,
        settings: ClientSettings,
        *,
        isolation: str = COMMITTED,
        on_lost: str = "fail",
        patience_s: float = PATIENCE_S,
    ) -> None:
        self._address, self._on_lost, self._patience_s = address, on_lost, patience_s
        self._client = load_client()
        self._consumer = make_consumer(address, settings, isolation)
        #: Partition and offset that the consumer delivers next; None if unknown.
        self._place: tuple[int, int] | None = None
        #: Offsets that retention removed while ranges were read.
        self.lost = 0

    def read(self, part: PartitionRange) -> Iterator[MessageBlock]:
        """Yield the messages of a range. Offsets without a message are passed over."""
        self._begin(part.partition, part.start)
        position, deadline, is_past = part.start, self._new_deadline(), False
        while position < part.end:
            count = min(part.end - position, MAX_MESSAGES)
            before, good = position, []
            for message in self._consumer.consume(count, timeout=WAIT_S):
                if (error := message.error()) is not None:
                    position = self._handle(error, message, part, position)
                elif message.offset() < part.end:
                    good.append(message)
                    position = message.offset() + 1
                else:  # a hole at the end of the range
                    position, is_past = part.end, True
            if good:
                yield self._build_block(part.partition, good)
            if position > before:
                deadline = self._new_deadline()
            elif time.monotonic() > deadline:
                raise self._stuck(part.partition, position)
        self._place = None if is_past else (part.partition, part.end)

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _begin(self, partition: int, offset: int) -> None:
        """Let the consumer deliver from an offset; it may be there already."""
        if self._place != (partition, offset):
            where = self._client.TopicPartition(self._address.topic, partition, offset)
            self._consumer.assign([where])
        self._place = None  # until the range has been read

    def _handle(self, error: Any, message: Any, part: PartitionRange, position: int) -> int:
        """Return the position after an event of a partition, or raise."""
        codes = self._client.KafkaError
        if message.partition() not in (part.partition, -1):  # left from an earlier range
            return position
        if error.code() == codes._PARTITION_EOF:
            # committed messages end where the planner found the end: holes may lie before it
            return max(position, min(int(message.offset()), part.end))
        if error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            return self._pass_lost(part, position)
        if error.code() == codes.UNKNOWN_TOPIC_OR_PART:
            raise missing_topic(self._address)
        if error.fatal() or "AUTH" in error.name():
            raise translate_error(error, self._address)
        return position  # the client tries again by itself

    def _pass_lost(self, part: PartitionRange, position: int) -> int:
        """Continue at the first offset that is left; only if lost offsets are counted."""
        where = self._client.TopicPartition(self._address.topic, part.partition)
        first, _ = self._consumer.get_watermark_offsets(where, timeout=REQUEST_S)
        if self._on_lost == "fail":
            raise lost_offsets(self._address.topic, part.partition, position, first)
        begin = min(max(int(first), position), part.end)
        self.lost += begin - position
        self._begin(part.partition, begin)
        return begin

    def _new_deadline(self) -> float:
        return time.monotonic() + self._patience_s

    def _stuck(self, partition: int, position: int) -> TimeoutError:
        place = describe_place(self._address.topic, partition, position)
        return TimeoutError(f"{place}: no message from Kafka in {self._patience_s:g} s")

    def _build_block(self, partition: int, messages: list[Any]) -> MessageBlock:
        return MessageBlock(
            topic=self._address.topic,
            partition=partition,
            offsets=[message.offset() for message in messages],
            values=[message.value() for message in messages],
            keys=[message.key() for message in messages],
            times_ms=[message.timestamp()[1] for message in messages],
        )


_readers: dict[tuple[object, ...], RangeReader] = {}


def find_reader(
    address: KafkaAddress, settings: ClientSettings, isolation: str, on_lost: str
) -> RangeReader:
    """Return the reader of this process; a process that was forked makes its own."""
    given = tuple(sorted(settings.to_options().items()))
    key = (os.getpid(), str(address), given, isolation, on_lost)
    if key not in _readers:
        _readers[key] = RangeReader(address, settings, isolation=isolation, on_lost=on_lost)
    return _readers[key]
