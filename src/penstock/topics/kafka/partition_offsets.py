"""Offsets of the partitions of a topic: the first, and the end that may be read."""

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.extras import import_optional
from penstock.topics.kafka.address import KafkaAddress
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.clients import (
    REQUEST_S,
    load_client,
    make_admin,
    make_consumer,
    missing_topic,
    translate_error,
)

COMMITTED = "read_committed"
UNCOMMITTED = "read_uncommitted"


class PartitionOffsets:
    """Asks the brokers; `ConnectionError` if they do not answer."""

    def __init__(
        self, address: KafkaAddress, settings: ClientSettings, isolation: str = COMMITTED
    ) -> None:
        self._address, self._settings, self._isolation = address, settings, isolation
        self._client = load_client()
        self._specs = import_optional("confluent_kafka.admin", "Kafka").OffsetSpec
        self._admin = make_admin(address, settings)
        # a consumer, because other clients make a topic by asking for it
        self._consumer = make_consumer(address, settings, isolation, on_error=self._note_error)
        #: The last error that is not an answer, such as a refused password.
        self._error: Any = None

    def list_partitions(self) -> list[int]:
        """Return the partitions of the topic, in order."""
        topic = self._address.topic
        try:
            metadata = self._consumer.list_topics(topic, timeout=REQUEST_S).topics.get(topic)
        except self._client.KafkaException as error:
            self._consumer.poll(0)  # delivers what `_note_error` waits for
            reason, self._error = self._error or error, None
            raise translate_error(reason, self._address) from None
        if metadata is None:
            raise missing_topic(self._address)
        if metadata.error is not None:
            raise translate_error(metadata.error, self._address)
        return sorted(metadata.partitions)

    def _note_error(self, error: Any) -> None:
        if error.code() == self._client.KafkaError._AUTHENTICATION or "SSL" in error.name():
            self._error = error

    def first(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the offset of the first message of each partition that retention has left."""
        return self._ask(partitions, self._specs.earliest())

    def end(self, partitions: Iterable[int]) -> dict[int, int]:
        """Return the end of each partition; for committed messages, before open transactions."""
        return self._ask(partitions, self._specs.latest())

    def _ask(self, partitions: Iterable[int], spec: Any) -> dict[int, int]:
        level = self._client.IsolationLevel
        isolation = level.READ_COMMITTED if self._isolation == COMMITTED else level.READ_UNCOMMITTED
        wanted = {
            self._client.TopicPartition(self._address.topic, number): spec for number in partitions
        }
        if not wanted:
            return {}
        try:
            answers: Mapping[Any, Any] = self._admin.list_offsets(
                wanted, isolation_level=isolation, request_timeout=REQUEST_S
            )
            return {
                place.partition: int(answer.result(REQUEST_S).offset)
                for place, answer in answers.items()
            }
        except (self._client.KafkaException, TimeoutError) as error:
            # the client does not look again who leads a partition; a new one does
            self._admin = make_admin(self._address, self._settings)
            if isinstance(error, TimeoutError):
                text = f"Kafka at {self._address.bootstrap}: no answer in {REQUEST_S:g} s"
                raise ConnectionError(text) from None
            raise translate_error(error, self._address, is_known=True) from None
