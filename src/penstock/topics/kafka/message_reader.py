"""Reads messages whose offsets are known; one consumer per process and topic, kept in between.

It does not wait for open transactions: an offset that a commit names belongs to committed rows.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any

from penstock.errors import InputError, OutageError
from penstock.topics.kafka.address import KafkaAddress
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.clients import load_client, make_consumer, missing_topic, translate_error
from penstock.topics.kafka.partition_offsets import UNCOMMITTED

#: Messages that are fetched ahead; they are large.
FETCH: dict[str, Any] = {"queued_min_messages": "20", "queued_max_messages_kbytes": "32768"}
#: A call waits for all messages it asks for or this long.
WAIT_S = 0.1
#: Without a message for this long, the brokers are given up.
PATIENCE_S = 60.0
#: Offsets that are passed over rather than asked for anew, such as ends of transactions.
MAX_PASSED = 16
MAX_AT_ONCE = 100


class MessageReader:
    """A consumer without a group: it reads what it is asked for."""

    def __init__(
        self, address: KafkaAddress, settings: ClientSettings, patience_s: float = PATIENCE_S
    ) -> None:
        self._address, self._patience_s = address, patience_s
        self._client = load_client("topics in Kafka")
        self._consumer = make_consumer(address, settings, UNCOMMITTED, **FETCH)
        #: Partition and offset that the consumer delivers next; None if unknown.
        self._place: tuple[int, int] | None = None

    def read(self, partition: int, offsets: Sequence[int]) -> Iterator[bytes]:
        """Yield the values at offsets of a partition, which increase."""
        wanted = deque(offsets)
        self._begin(partition, wanted[0])
        deadline = time.monotonic() + self._patience_s
        while wanted:
            good = []
            for message in self._consumer.consume(min(len(wanted), MAX_AT_ONCE), timeout=WAIT_S):
                if (error := message.error()) is not None:
                    self._handle(error, message, partition, wanted[0])
                elif message.partition() == partition and wanted and message.offset() >= wanted[0]:
                    if message.offset() > wanted[0]:
                        raise self._lost(partition, wanted[0])
                    good.append(message.value())
                    last = wanted.popleft()
            yield from good
            if good:
                deadline = time.monotonic() + self._patience_s
            elif time.monotonic() > deadline:
                text = (
                    f"no answer from Kafka at {self._address.bootstrap} in {self._patience_s:g} s"
                )
                raise OutageError(self._address.topic, text)
        self._place = (partition, last + 1)

    def _begin(self, partition: int, offset: int) -> None:
        """Let the consumer deliver from an offset; it may be there already, or a little before."""
        here = self._place
        self._place = None  # until everything has been read
        if here is None or here[0] != partition or not 0 <= offset - here[1] <= MAX_PASSED:
            where = self._client.TopicPartition(self._address.topic, partition, offset)
            self._consumer.assign([where])

    def _handle(self, error: Any, message: Any, partition: int, offset: int) -> None:
        """Raise if an event of the partition is an error that does not pass."""
        codes = self._client.KafkaError
        if message.partition() not in (partition, -1):  # left from an earlier range
            return
        if error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            raise self._lost(partition, offset)
        if error.code() == codes.UNKNOWN_TOPIC_OR_PART:
            raise missing_topic(self._address)
        if error.fatal() or "AUTH" in error.name():
            raise translate_error(error, self._address)

    def _lost(self, partition: int, offset: int) -> InputError:
        problem = f"partition {partition}: offset {offset} was removed before it was read"
        hint = (
            "rows that nobody has read are lost; Penstock removes rows that were read by itself, so"
            " set retention.ms=-1, retention.bytes=-1 and cleanup.policy=delete for the topic"
        )
        return InputError(f"topic {self._address.topic}", problem, hint)


_readers: dict[tuple[object, ...], MessageReader] = {}


def find_message_reader(address: KafkaAddress, settings: ClientSettings) -> MessageReader:
    """Return the reader of this process; a process that was forked makes its own."""
    given = tuple(sorted(settings.to_options().items()))
    key = (os.getpid(), threading.get_ident(), str(address), given)
    if key not in _readers:
        _readers[key] = MessageReader(address, settings)
    return _readers[key]
