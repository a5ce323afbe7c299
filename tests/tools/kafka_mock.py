"""A Kafka broker inside the test's process: librdkafka's own. It knows no transactions."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Producer

#: Each topic has four partitions and appears when it is first written.
PARTITIONS = 4


class MockKafka:
    """The broker lives as long as its producer."""

    def __init__(self) -> None:
        settings = {"bootstrap.servers": "x", "test.mock.num.brokers": "1", "log_level": 0}
        self._producer = Producer(settings)
        (broker,) = self._producer.list_topics(timeout=10).brokers.values()
        self.server = f"{broker.host}:{broker.port}"

    def url(self, topic: str) -> str:
        """Return the address of a topic."""
        return f"kafka://{self.server}/{topic}"

    def write(self, topic: str, partition: int, values: list[bytes], **more: Any) -> None:
        """Write messages to a partition."""
        for value in values:
            self._producer.produce(topic, value, partition=partition, **more)
        assert self._producer.flush(10) == 0


@contextmanager
def mock_kafka() -> Iterator[MockKafka]:
    """A broker for a test."""
    broker = MockKafka()
    yield broker
    del broker
