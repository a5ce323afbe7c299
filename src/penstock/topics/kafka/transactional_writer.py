"""Writes the rows of a task in one transaction with a receipt, so that a repeated task adds none.

The receipt is an offset of a consumer group that only this task has: the number of the batch. It
is part of the transaction. A producer that takes over the id of another one fences it.
"""

import json
import logging
import os
import time
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from penstock.errors import InputError
from penstock.topics.kafka.address import KafkaAddress
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.clients import load_client, make_consumer, make_producer, translate_error
from penstock.topics.kafka.partition_offsets import COMMITTED

_LOG = logging.getLogger(__name__)
#: Keys and values of messages.
Messages = tuple[Sequence[bytes | None], Sequence[bytes | None]]

#: An open transaction of a dead task holds back all readers until it is taken over, or this long.
TRANSACTION_MS = 30_000
#: Seconds to wait for a broker before a task fails.
PATIENCE_S = 60.0
#: Producers that a process keeps; each has a connection and threads.
MAX_PRODUCERS = 2
#: Messages that are kept to begin again with another producer, in bytes.
MAX_KEPT_BYTES = 64 << 20
#: Messages given to the client at once.
_STEP = 10_000


@dataclass(frozen=True, slots=True)
class TaskId:
    """A task of a query: the same for every attempt, in every process."""

    query: str
    index: int
    prefix: str = "penstock"

    def __str__(self) -> str:
        return f"{self.prefix}-{self.query}-{self.index}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a task has written last, as the brokers know it."""

    batch: int
    messages: int

    @property
    def metadata(self) -> str:
        """The text that is kept with the offset."""
        return json.dumps({"messages": self.messages})


class FencedError(ConnectionError):
    """Another producer has taken over the id."""


class TransactionalProducer:
    """A producer of one task, with the consumer that reads its receipts."""

    def __init__(self, address: KafkaAddress, settings: ClientSettings, task: TaskId) -> None:
        self._client, self._address = load_client(), address
        own = {"transactional_id": str(task)}
        if "transaction.timeout.ms" not in settings.resolve():
            own["transaction_timeout_ms"] = str(TRANSACTION_MS)
        self._producer = make_producer(address, settings, **own)
        self._consumer = make_consumer(address, settings, COMMITTED, str(task))
        self._place = (address.topic, 0)
        #: The batch of the last receipt that this producer has seen or written.
        self.last: int | None = None
        try:
            # ends what an earlier attempt has begun
            self._call(self._producer.init_transactions)
            receipt = self.read_receipt()
            self.last = None if receipt is None else receipt.batch
        except BaseException:
            self.close()
            raise

    def read_receipt(self) -> Receipt | None:
        """Return the last receipt; None if this task has not written yet."""
        where = self._client.TopicPartition(*self._place)
        (committed,) = self._call(lambda seconds: self._consumer.committed([where], seconds))
        if committed.error is not None:
            raise translate_error(committed.error, self._address)
        if committed.offset < 0:
            return None
        written = json.loads(committed.metadata or "{}")
        return Receipt(batch=committed.offset, messages=int(written.get("messages", 0)))

    def write(self, batch: int, messages: Iterator[Messages]) -> Receipt:
        """Write messages and receipt in one transaction, and commit it."""
        count = 0
        self._call(lambda _: self._producer.begin_transaction())
        for keys, values in messages:
            self._send(keys, values)
            count += len(values)
        receipt = Receipt(batch=batch, messages=count)
        place = self._client.TopicPartition(*self._place, batch, metadata=receipt.metadata)
        group = self._consumer.consumer_group_metadata()
        self._call(lambda s: self._producer.send_offsets_to_transaction([place], group, s))
        self._call(self._producer.commit_transaction)
        self.last = batch
        return receipt

    def close(self) -> None:
        """Give up: what is open is ended by the next producer of this id."""
        self._producer.purge()
        self._consumer.close()

    def _send(self, keys: Sequence[bytes | None], values: Sequence[bytes | None]) -> None:
        waiting = [
            {"value": value} if key is None else {"value": value, "key": key}
            for key, value in zip(keys, values, strict=True)
        ]
        for start in range(0, len(waiting), _STEP):
            part: list[dict[str, Any]] = waiting[start : start + _STEP]
            while part:
                part = self._send_part(part)

    def _send_part(self, part: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Give messages to the client; return those for which its queue has no room."""
        codes = self._client.KafkaError
        try:
            self._producer.produce_batch(self._address.topic, part)
        except BufferError:
            pass
        except self._client.KafkaException as error:
            raise self._translate(error) from None
        rest = []
        for message in part:
            if (problem := message.pop("_error", None)) is None:
                continue
            if problem.code() != codes._QUEUE_FULL:
                raise self._translate(problem)
            rest.append(message)
        self._producer.poll(0.1 if rest else 0)
        return rest

    def _call(self, call: Any) -> Any:
        """Call the client again while the brokers may still answer."""
        deadline = time.monotonic() + PATIENCE_S
        while True:
            left_s = max(0.1, deadline - time.monotonic())
            try:
                return call(left_s)
            except self._client.KafkaException as error:
                if not error.args[0].retriable() or time.monotonic() > deadline:
                    raise self._translate(error) from None
                time.sleep(0.1)

    def _translate(self, error: Any) -> Exception:
        reason = error.args[0] if isinstance(error, BaseException) else error
        if reason.name() in ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"):
            return FencedError(f"{self._address}: {reason.str()}")
        return translate_error(error, self._address)


_producers: "OrderedDict[tuple[object, ...], TransactionalProducer]" = OrderedDict()


def write_once(
    address: KafkaAddress,
    settings: ClientSettings,
    task: TaskId,
    batch: int,
    messages: Iterator[Messages],
) -> Receipt:
    """Write the messages of a task, unless an earlier attempt has; return its receipt.

    The messages must be those of the earlier attempt. Nothing is written without messages.
    """
    kept, rest = _keep(messages)
    if not any(len(values) for _, values in kept):
        return Receipt(batch=batch, messages=0)
    key = (os.getpid(), str(address), tuple(sorted(settings.to_options().items())), task)
    for is_last in (False, True):
        producer = None
        try:
            producer = _take_producer(key, address, settings, task)
            receipt = producer.read_receipt()
            if receipt is None or receipt.batch < batch:
                receipt = producer.write(batch, chain(kept, rest))
            _keep_producer(key, producer)
            return receipt
        except BaseException as error:
            if producer is not None:
                producer.close()
            # a task that ran elsewhere in between has taken over the id: take it back, once
            if not isinstance(error, FencedError) or is_last or rest is not _NOTHING:
                raise
            _LOG.info("%s was taken over, begins again", task)
    raise AssertionError


def _take_producer(
    key: tuple[object, ...], address: KafkaAddress, settings: ClientSettings, task: TaskId
) -> TransactionalProducer:
    """Return the kept producer of a task if nobody wrote in between, or a new one."""
    producer = _producers.pop(key, None)
    if producer is not None:
        receipt = producer.read_receipt()
        if producer.last == (None if receipt is None else receipt.batch):
            return producer
        producer.close()
    return TransactionalProducer(address, settings, task)


def _keep_producer(key: tuple[object, ...], producer: TransactionalProducer) -> None:
    _producers[key] = producer
    while len(_producers) > MAX_PRODUCERS:
        _producers.popitem(last=False)[1].close()


_NOTHING: Iterator[Messages] = iter(())


def _keep(messages: Iterator[Messages]) -> tuple[list[Messages], Iterator[Messages]]:
    """Return the first messages in memory, and the others.

    So a transaction is open while messages are sent, not while they are computed.
    """
    kept, size = [], 0
    for keys, values in messages:
        kept.append((keys, values))
        size += sum(len(value) for value in values if value is not None)
        if size > MAX_KEPT_BYTES:
            return kept, messages
    return kept, _NOTHING


def check_prefix(prefix: str) -> None:
    """Raise `InputError` if a prefix of transactional ids is empty or has white space."""
    if not prefix or any(letter.isspace() for letter in prefix):
        raise InputError("id_prefix", f"must be a word, got {prefix!r}", "such as 'penstock'")
