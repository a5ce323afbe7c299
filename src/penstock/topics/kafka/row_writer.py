"""Writes rows to a Kafka topic as JSON, each once unless the process is killed."""

import time
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from penstock.errors import InputError
from penstock.extras import import_optional
from penstock.topics.kafka.address import KafkaAddress
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.clients import (
    load_client,
    make_admin,
    make_producer,
    missing_topic,
    translate_error,
)
from penstock.topics.kafka.json_values import encode_json
from penstock.topics.kafka.partition_offsets import PartitionOffsets

#: Seconds to wait until the brokers have all rows.
FLUSH_S = 60.0
#: Seconds to wait for a new topic.
CREATE_S = 20.0


class KafkaRows:
    """The rows of a topic, as a producer counts them: it always begins with its first row."""

    def refresh(self) -> int:
        """Return how many rows of the workload exist."""
        return 0


class KafkaRowWriter:
    """A producer with what `topics.producer` needs of a writer."""

    def __init__(self, address: KafkaAddress, settings: ClientSettings) -> None:
        self.topic = KafkaRows()
        self._address, self._client = address, load_client()
        self._producer = make_producer(
            address, settings, enable_idempotence=True, delivery_report_only_error=True
        )
        self._error: Any = None

    def append(self, rows: pa.Table) -> None:
        """Write rows; waits while the client has no room."""
        for batch in rows.to_batches():
            part: list[dict[str, Any]] = [{"value": value} for value in encode_json(batch)]
            while part:
                try:
                    self._producer.produce_batch(
                        self._address.topic, part, on_delivery=self._note_error
                    )
                except BufferError:
                    self._producer.poll(0.1)
                part = [message for message in part if message.pop("_error", None) is not None]
                if part:
                    self._producer.poll(0.1)
                self._check()
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the brokers have all rows, or raise."""
        left = self._producer.flush(FLUSH_S)
        self._check()
        if left:
            text = f"{self._address}: {left} rows did not reach the brokers in {FLUSH_S:g} s"
            raise ConnectionError(text)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._producer.purge()

    def _note_error(self, error: Any, message: Any) -> None:  # noqa: ARG002  (signature)
        self._error = error

    def _check(self) -> None:
        if self._error is not None:
            raise translate_error(self._error, self._address)


def make_topic(address: KafkaAddress, settings: ClientSettings, partitions: int | None) -> int:
    """Make a topic if it is missing; return the number of its partitions.

    `InputError` if it has another number than was asked for.
    """
    offsets = PartitionOffsets(address, settings)
    try:
        count = len(offsets.list_partitions())
    except InputError as missing:
        if str(missing) != str(missing_topic(address)):
            raise
        _create(address, settings, partitions)
        return _wait_for_partitions(offsets)
    if partitions is not None and count != partitions:
        problem = f"must be {count}, as topic {address.topic} has, got {partitions}"
        raise InputError("--partitions", problem, "leave it out, or write to another topic")
    return count


def _wait_for_partitions(offsets: PartitionOffsets) -> int:
    """Return the number of partitions of a new topic, as soon as the brokers know it."""
    deadline = time.monotonic() + CREATE_S
    while True:
        try:
            partitions = offsets.list_partitions()
            offsets.end(partitions)
            return len(partitions)
        except (InputError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _create(address: KafkaAddress, settings: ClientSettings, partitions: int | None) -> None:
    module = import_optional("confluent_kafka.admin", "Kafka")
    admin, client = make_admin(address, settings), load_client()
    # -1: the default of the brokers
    topic = module.NewTopic(address.topic, num_partitions=partitions or -1, replication_factor=-1)
    try:
        admin.create_topics([topic], operation_timeout=CREATE_S)[address.topic].result(CREATE_S)
    except client.KafkaException as error:
        raise translate_error(error, address) from None
