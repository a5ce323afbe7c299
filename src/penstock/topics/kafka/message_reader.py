"""Reads messages whose offsets are known; one consumer per thread, for all topics of a cluster.

It does not wait for open transactions: an offset that a commit names belongs to committed rows.
"""

import os
import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
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
#: Messages that are in memory at once.
MAX_AT_ONCE = 32


class MessageReader:
    """A consumer without a group: it reads what it is asked for."""

    def __init__(
        self, address: KafkaAddress, settings: ClientSettings, patience_s: float = PATIENCE_S
    ) -> None:
        self._address, self._patience_s = address, patience_s
        self._client = load_client("topics in Kafka")
        self._consumer = make_consumer(address, settings, UNCOMMITTED, **FETCH)
        #: Topic, partition and offset that the consumer delivers next; None if unknown.
        self._place: tuple[str, int, int] | None = None

    def read(self, topic: str, partition: int, offsets: Sequence[int]) -> Iterator[bytes]:
        """Yield the values at offsets of a partition, which increase.

        Other ranges may be read in between.
        """
        for first in range(0, len(offsets), MAX_AT_ONCE):
            yield from self._fetch((topic, partition), offsets[first : first + MAX_AT_ONCE])

    def _fetch(self, here: tuple[str, int], offsets: Sequence[int]) -> list[bytes]:
        """Return the values at some offsets."""
        wanted, values = deque(offsets), list[bytes]()
        self._begin(here, wanted[0])
        deadline = time.monotonic() + self._patience_s
        while wanted:
            before = len(wanted)
            for message in self._consumer.consume(before, timeout=WAIT_S):
                if (error := message.error()) is not None:
                    self._handle(error, message, here, offsets[min(len(values), len(offsets) - 1)])
                elif not wanted or (message.topic(), message.partition()) != here:
                    continue  # left from an earlier range
                elif message.offset() > wanted[0]:
                    raise self._lost(here, wanted[0])
                elif message.offset() == wanted[0]:
                    values.append(message.value())
                    wanted.popleft()
            if len(wanted) < before:
                deadline = time.monotonic() + self._patience_s
            elif time.monotonic() > deadline:
                servers = self._address.bootstrap
                text = f"no answer from Kafka at {servers} in {self._patience_s:g} s"
                raise OutageError(here[0], text)
        self._place = (*here, offsets[-1] + 1)
        return values

    def _begin(self, here: tuple[str, int], offset: int) -> None:
        """Let the consumer deliver from an offset; it may be there already, or a little before."""
        before, self._place = self._place, None  # until everything has been read
        is_near = before is not None and 0 <= offset - before[2] <= MAX_PASSED
        if before is None or before[:2] != here or not is_near:
            self._consumer.assign([self._client.TopicPartition(*here, offset)])

    def _handle(self, error: Any, message: Any, here: tuple[str, int], offset: int) -> None:
        """Raise if an event of the partition is an error that does not pass."""
        codes = self._client.KafkaError
        place, address = (
            (message.topic(), message.partition()),
            replace(self._address, topic=here[0]),
        )
        if place[0] is not None and place != here:  # left from an earlier range
            return
        if error.code() in (codes._AUTO_OFFSET_RESET, codes.OFFSET_OUT_OF_RANGE):
            raise self._lost(here, offset)
        if error.code() == codes.UNKNOWN_TOPIC_OR_PART:
            raise missing_topic(address)
        if error.fatal() or "AUTH" in error.name():
            raise translate_error(error, address)

    def _lost(self, here: tuple[str, int], offset: int) -> InputError:
        topic, partition = here
        problem = f"partition {partition}: offset {offset} was removed before it was read"
        hint = (
            "rows that nobody has read are lost; Penstock removes rows that were read by itself, so"
            " set retention.ms=-1, retention.bytes=-1 and cleanup.policy=delete for the topic"
        )
        return InputError(f"topic {topic}", problem, hint)


_readers: dict[tuple[object, ...], MessageReader] = {}


def find_message_reader(address: KafkaAddress, settings: ClientSettings) -> MessageReader:
    """Return the reader of this thread; a process that was forked makes its own."""
    given = tuple(sorted(settings.to_options().items()))
    key = (os.getpid(), threading.get_ident(), address.servers, given)
    if key not in _readers:
        _readers[key] = MessageReader(address, settings)
    return _readers[key]
