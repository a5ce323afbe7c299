"""The producer of one task: transactions with a receipt, so that a repeated task adds nothing.

The receipt is an offset of a consumer group that only this task has: the number of the batch. It
is part of the transaction. A producer that takes over the id of another one fences it.
"""

import json
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from penstock.topics.kafka.address import KafkaAddress
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.clients import load_client, make_consumer, make_producer, translate_error
from penstock.topics.kafka.partition_offsets import COMMITTED

#: Keys and values of messages.
Messages = tuple[Sequence[bytes | None], Sequence[bytes | None]]

#: An open transaction of a dead task holds back all readers until it is taken over, or this long.
TRANSACTION_MS = 30_000
#: Seconds to wait for a broker before a task fails.
PATIENCE_S = 60.0
#: Seconds to wait until a receipt is added to a transaction.
COORDINATOR_S = 20.0
#: Seconds to wait until a transaction is aborted.
ABORT_S = 5.0
#: The largest message that the client takes; a topic may allow less.
MAX_MESSAGE_BYTES = 16 << 20
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
    #: The name of a file with what the task reported; empty without one.
    note: str = ""

    @property
    def metadata(self) -> str:
        """The text that is kept with the offset; brokers allow 4 KB."""
        note = {"note": self.note} if self.note else {}
        return json.dumps({"messages": self.messages, **note})


class Part(NamedTuple):
    """Messages for one partition of a topic."""

    topic: str
    partition: int
    values: Sequence[bytes]


class FencedError(ConnectionError):
    """Another producer has taken over the id."""


class TransactionalProducer:
    """A producer of one task, with the consumer that reads its receipts."""

    def __init__(self, address: KafkaAddress, settings: ClientSettings, task: TaskId) -> None:
        self._client, self._address = load_client(), address
        own = {"transactional_id": str(task), "message_max_bytes": str(MAX_MESSAGE_BYTES)}
        if "transaction.timeout.ms" not in settings.resolve():
            own["transaction_timeout_ms"] = str(TRANSACTION_MS)
        #: Whether a broker went away since it was made; see `is_stale`.
        self._is_cut_off = False
        self._producer = make_producer(address, settings, on_error=self._note_error, **own)
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

    @property
    def is_stale(self) -> bool:
        """Whether it may hang: the client does not notice that a coordinator has come back."""
        self._producer.poll(0)  # delivers what `_note_error` waits for
        return self._is_cut_off

    def _note_error(self, error: Any) -> None:  # noqa: ARG002  (signature)
        self._is_cut_off = True

    def read_receipt(self) -> Receipt | None:
        """Return the last receipt; None if this task has not written yet."""
        where = self._client.TopicPartition(*self._place)
        (committed,) = self._call(lambda seconds: self._consumer.committed([where], seconds))
        if committed.error is not None:
            raise translate_error(committed.error, self._address)
        if committed.offset < 0:
            return None
        written = json.loads(committed.metadata or "{}")
        return Receipt(
            batch=committed.offset,
            messages=int(written.get("messages", 0)),
            note=str(written.get("note", "")),
        )

    def write(self, batch: int, messages: Iterator[Messages]) -> Receipt:
        """Write messages and receipt in one transaction, and commit it."""
        count = 0
        self._call(lambda _: self._producer.begin_transaction())
        for keys, values in messages:
            self._send(keys, values)
            count += len(values)
        receipt = Receipt(batch=batch, messages=count)
        self.commit(receipt)
        return receipt

    def send_parts(self, parts: Sequence[Part]) -> list[list[int]]:
        """Begin a transaction and send messages; return their offsets when brokers have them."""
        self._call(lambda _: self._producer.begin_transaction())
        offsets = [[-1] * len(part.values) for part in parts]
        problems: list[Any] = []
        for part, known in zip(parts, offsets, strict=True):
            for number, value in enumerate(part.values):
                self._produce(part, value, partial(_note_offset, known, number, problems))
        deadline = time.monotonic() + PATIENCE_S
        while self._flush(problems) and not problems:
            if time.monotonic() > deadline:
                text = f"{self._address.bootstrap}: messages did not arrive in {PATIENCE_S:g} s"
                raise ConnectionError(text)
        if problems:
            raise self._explain(problems[0])
        if any(offset < 0 for known in offsets for offset in known):
            # written by an attempt to send whose answer was lost
            raise ConnectionError(f"{self._address.bootstrap}: the offset of a message is unknown")
        return offsets

    def commit(self, receipt: Receipt) -> None:
        """Commit the transaction with its receipt."""
        place = self._client.TopicPartition(*self._place, receipt.batch, metadata=receipt.metadata)
        group = self._consumer.consumer_group_metadata()
        self._call_limited(lambda s: self._producer.send_offsets_to_transaction([place], group, s))
        self._call(self._producer.commit_transaction)
        self.last = receipt.batch

    def abort(self) -> None:
        """Abort the transaction, if the brokers answer soon; else the next producer does."""
        if not self._is_cut_off:
            with suppress(self._client.KafkaException):
                self._producer.abort_transaction(ABORT_S)

    def close(self) -> None:
        """Give up: what is open is ended by the next producer of this id."""
        self._producer.purge()
        self._consumer.close()

    def _flush(self, problems: list[Any]) -> int:
        """Wait for deliveries; return how many messages are left."""
        try:
            return int(self._producer.flush(1.0))
        except (self._client.KafkaException, SystemError) as error:
            problems.insert(0, self._unwrap(error))
            return 0

    def _unwrap(self, error: BaseException) -> Any:
        """Return the error of the client that it raised while it delivered messages."""
        cause = error.__cause__
        return cause if isinstance(cause, self._client.KafkaException) else error

    def _produce(self, part: Part, value: bytes, on_delivery: Any) -> None:
        """Give one message to the client, as soon as its queue has room."""
        while True:
            try:
                self._producer.produce(
                    part.topic, value, partition=part.partition, on_delivery=on_delivery
                )
                self._producer.poll(0)
                return
            except BufferError:
                self._producer.poll(0.1)
            except (self._client.KafkaException, SystemError) as error:
                raise self._explain(self._unwrap(error)) from None

    def _explain(self, error: Any) -> Exception:
        """Abort, and return why messages were not delivered: a fenced client says it then."""
        translated = self._translate(error)
        if isinstance(translated, FencedError):
            return translated
        try:
            self._producer.abort_transaction(ABORT_S)
        except (self._client.KafkaException, SystemError) as reason:
            if isinstance(fenced := self._translate(self._unwrap(reason)), FencedError):
                return fenced
        return translated

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

    def _call_limited(self, call: Any) -> None:
        """Call the client, which ignores the limit of this call (librdkafka, issue 5456)."""
        outcome: list[BaseException | None] = []

        def run() -> None:
            try:
                self._call(call)
            except BaseException as error:
                outcome.append(error)
            else:
                outcome.append(None)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(COORDINATOR_S)
        if not outcome:
            self._is_cut_off = True
            servers = self._address.bootstrap
            raise ConnectionError(f"{servers}: no coordinator for receipts in {COORDINATOR_S:g} s")
        if outcome[0] is not None:
            raise outcome[0]

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
        if getattr(reason, "name", str)() in (
            "_FENCED",
            "PRODUCER_FENCED",
            "INVALID_PRODUCER_EPOCH",
        ):
            return FencedError(f"{self._address}: {reason.str()}")
        return translate_error(error, self._address)


def _note_offset(
    offsets: list[int], number: int, problems: list[Any], error: Any, message: Any
) -> None:
    """Note the offset of a delivered message, or why it was not delivered."""
    if error is not None:
        problems.append(error)
    elif message.offset() is not None:
        offsets[number] = message.offset()
