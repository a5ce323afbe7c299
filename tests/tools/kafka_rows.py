"""Topics of a pipeline in Kafka, and what readers that know nothing of Penstock see there."""

import io
import json
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.pipelines.pipeline import Pipeline
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.cluster import KafkaCluster
from penstock.topics.schema import EVENT

#: Differences shown of each topic.
SHOWN = 5


def place_in(pipeline: Pipeline, address: str | None) -> Pipeline:
    """Return a pipeline whose rows are in Kafka, where all of them stay; itself if nowhere."""
    if address is None:
        return pipeline
    placed = pipeline.with_cluster(KafkaCluster(parse_address(address)))
    placed.declared = {
        name: replace(topic, keep="everything") for name, topic in placed.topics.items()
    }
    return placed


def read_messages(server: str, topic: str, isolation: str = "read_committed") -> Iterator[bytes]:
    """Yield the values of all messages that a reader with this isolation sees."""
    from confluent_kafka import Consumer, TopicPartition  # noqa: PLC0415  (an extra)

    consumer = Consumer(
        {
            "bootstrap.servers": server,
            "group.id": "foreign",
            "isolation.level": isolation,
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
            "log_level": 0,
        }
    )
    partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
    consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
    left, deadline = set(partitions), time.monotonic() + 60
    while left:
        assert time.monotonic() < deadline, topic
        for message in consumer.consume(100, timeout=0.1):
            if message.error() is None:
                yield message.value()
            else:
                left.discard(message.partition())
    consumer.close()


def read_rows(server: str, topic: str, isolation: str = "read_committed") -> Counter[str]:
    """Return the rows that a reader sees, without their event times, as a multiset."""
    rows: Counter[str] = Counter()
    for value in read_messages(server, topic, isolation):
        rows.update(_list_rows(pa.ipc.open_stream(io.BytesIO(value)).read_all()))
    return rows


def compare_foreign(address: str, found: Mapping[str, pa.Table]) -> list[str]:
    """Compare what foreign readers see with the rows of topics; list what differs."""
    place, wrong = parse_address(address), []
    for name, table in found.items():
        expected = Counter(_list_rows(table))
        seen = read_rows(place.bootstrap, f"{place.topic}.{name}")
        every = read_rows(place.bootstrap, f"{place.topic}.{name}", "read_uncommitted")
        for what, rows in (
            ("missing", expected - seen),
            ("too many", seen - expected),
            ("not even uncommitted", expected - every),
        ):
            if rows:
                first = sorted(rows)[:SHOWN]
                wrong.append(f"{name}: {rows.total()} rows {what} for foreign readers: {first}")
    return wrong


def _list_rows(table: pa.Table) -> Iterator[str]:
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        row.pop(EVENT, None)
        yield json.dumps(row, default=str, sort_keys=True)
