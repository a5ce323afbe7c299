"""Writes the rows of a task in one transaction with a receipt, so that a repeated task adds none.

The receipt is an offset of a consumer group that only this task has: the number of the batch. It
is part of the transaction. A producer that takes over the id of another one fences it.
"""

import logging
import os
from collections import OrderedDict
from collections.abc import Iterator
from itertools import chain

from penstock.errors import InputError
from penstock.topics.kafka.address import KafkaAddress
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.transactional_producer import (
    FencedError,
    Messages,
    Receipt,
    TaskId,
    TransactionalProducer,
)

_LOG = logging.getLogger(__name__)
#: Producers that a process keeps; each has a connection and threads.
MAX_PRODUCERS = 2
#: Messages that are kept to begin again with another producer, in bytes.
MAX_KEPT_BYTES = 64 << 20

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
    for is_last in (False, True):
        producer = None
        try:
            producer = take_producer(address, settings, task)
            receipt = producer.read_receipt()
            if receipt is None or receipt.batch < batch:
                receipt = producer.write(batch, chain(kept, rest))
            keep_producer(address, settings, task, producer)
            return receipt
        except BaseException as error:
            if producer is not None:
                producer.close()
            # a task that ran elsewhere in between has taken over the id: take it back, once
            if not isinstance(error, FencedError) or is_last or rest is not _NOTHING:
                raise
            _LOG.info("%s was taken over, begins again", task)
    raise AssertionError


def take_producer(
    address: KafkaAddress, settings: ClientSettings, task: TaskId
) -> TransactionalProducer:
    """Return the kept producer of a task if nobody wrote in between, or a new one."""
    producer = _producers.pop(_make_key(address, settings, task), None)
    if producer is not None and producer.is_stale:
        producer.close()
        producer = None
    if producer is not None:
        receipt = producer.read_receipt()
        if producer.last == (None if receipt is None else receipt.batch):
            return producer
        producer.close()
    return TransactionalProducer(address, settings, task)


def keep_producer(
    address: KafkaAddress,
    settings: ClientSettings,
    task: TaskId,
    producer: TransactionalProducer,
) -> None:
    """Keep the producer of a task for its next batch, in place of the oldest ones."""
    _producers[_make_key(address, settings, task)] = producer
    while len(_producers) > MAX_PRODUCERS:
        _producers.popitem(last=False)[1].close()


def _make_key(address: KafkaAddress, settings: ClientSettings, task: TaskId) -> tuple[object, ...]:
    return os.getpid(), str(address), tuple(sorted(settings.to_options().items())), task


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
