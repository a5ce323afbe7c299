"""Topics of a broker as tests see them: made, written, read to the end, compared."""

import json
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic
from tests.tools.kafka_broker import KafkaBroker

QUIET = {"log_level": 0}


def make_topic(broker: KafkaBroker, name: str, partitions: int = 3, **config: str) -> str:
    """Make a topic and return its address."""
    admin = AdminClient({**QUIET, "bootstrap.servers": broker.address})
    settings = {key.replace("_", "."): value for key, value in config.items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
    admin.create_topics([topic])[name].result(20)
    _wait_for_leaders(admin, name, partitions)
    return broker.url(name)


def add_partitions(broker: KafkaBroker, name: str, partitions: int) -> None:
    """Raise the number of partitions of a topic."""
    admin = AdminClient({**QUIET, "bootstrap.servers": broker.address})
    admin.create_partitions([NewPartitions(name, partitions)])[name].result(20)
    _wait_for_leaders(admin, name, partitions)


def delete_before(broker: KafkaBroker, name: str, offsets: dict[int, int]) -> None:
    """Remove the messages before these offsets, as retention does."""
    admin = AdminClient({**QUIET, "bootstrap.servers": broker.address})
    places = [TopicPartition(name, number, at) for number, at in offsets.items()]
    for answer in admin.delete_records(places).values():
        answer.result(20)


def produce(broker: KafkaBroker, name: str, values: Iterable[Any], partition: int = -1) -> None:
    """Write values as JSON."""
    producer = Producer({**QUIET, "bootstrap.servers": broker.address, "enable.idempotence": True})
    for value in values:
        producer.produce(name, json.dumps(value).encode(), partition=partition)
        producer.poll(0)
    assert producer.flush(60) == 0


def read_topic(broker: KafkaBroker, name: str, isolation: str = "read_committed") -> list[Any]:
    """Return all values that a reader with this isolation sees, from JSON."""
    consumer = Consumer(
        {
            **QUIET,
            "bootstrap.servers": broker.address,
            "group.id": "tests",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    partitions = consumer.list_topics(name, timeout=20).topics[name].partitions
    consumer.assign([TopicPartition(name, number, 0) for number in partitions])
    values, open_partitions, deadline = [], set(partitions), time.monotonic() + 60
    while open_partitions:
        assert time.monotonic() < deadline
        for message in consumer.consume(1000, timeout=0.1):
            if message.error() is None:
                values.append(json.loads(message.value()))
                open_partitions.add(message.partition())
            else:
                open_partitions.discard(message.partition())
    consumer.close()
    return values


def differences(expected: Iterable[Any], found: Iterable[Any]) -> tuple[Counter[Any], Counter[Any]]:
    """Return what is missing and what is too much, as multisets."""
    want, have = Counter(expected), Counter(found)
    return want - have, have - want


def _wait_for_leaders(admin: AdminClient, name: str, partitions: int) -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = admin.list_topics(name, timeout=20).topics[name].partitions
        if len(found) == partitions and all(part.leader >= 0 for part in found.values()):
            return
        time.sleep(0.05)
    raise TimeoutError(name)
