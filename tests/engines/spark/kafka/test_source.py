"""The source without Spark: what its methods return, against librdkafka's own broker."""

from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.tools.kafka_mock import MockKafka, mock_kafka

from penstock.engines.spark.kafka import source
from penstock.engines.spark.kafka.source import KafkaReader, KafkaSource
from penstock.errors import InputError

ALL = ReadAllAvailable()


@pytest.fixture
def broker() -> Iterator[MockKafka]:
    with mock_kafka() as broker:
        yield broker


def numbers(first: int, count: int) -> list[bytes]:
    return [b'{"id":%d}' % number for number in range(first, first + count)]


def reader_of(broker: Any, topic: str = "orders", **more: str) -> KafkaReader:
    options = {
        "address": broker.url(topic),
        "schema": "id long, _offset long",
        "values": "json",
        "start": "earliest",
        "max_rows": "0",
        "tasks": "0",
        "on_lost": "fail",
        "isolation": "read_committed",
        **more,
    }
    return KafkaReader(options, KafkaSource(options).schema())


def read(reader: KafkaReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    tasks = reader.partitions(start, end)
    return [n for task in tasks for rows in reader.read(task) for n in rows["id"].to_pylist()]


def test_batches_follow_each_other(broker: MockKafka) -> None:
    broker.write("orders", 0, numbers(0, 3000))
    broker.write("orders", 1, numbers(5000, 10))
    reader = reader_of(broker, max_rows="1505")
    assert reader.getDefaultReadLimit() == ReadMaxRows(1505)
    start = reader.initialOffset()
    assert start["orders"] == {"0": 0, "1": 0, "2": 0, "3": 0}
    first = reader.latestOffset(start, ReadMaxRows(1505))
    assert sum(first["orders"].values()) == 1505
    assert first["orders"]["1"] > 0
    assert reader.reportLatestOffset() == {"orders": {"0": 3000, "1": 10, "2": 0, "3": 0}}
    assert len(reader.partitions(start, first)) == 2
    last = reader.latestOffset(first, ALL)
    assert reader.latestOffset(last, ALL) == last
    assert reader.partitions(last, last) == []
    found = sorted(read(reader, start, first) + read(reader, first, last))
    assert found == [*range(3000), *range(5000, 5010)]
    # the same tasks, whatever a later start asks for
    assert len(reader_of(broker, tasks="9").partitions(start, first)) == 2


def test_latest_begins_at_the_end(broker: MockKafka) -> None:
    broker.write("orders", 2, numbers(0, 5))
    reader = reader_of(broker, start="latest")
    start = reader.initialOffset()
    broker.write("orders", 2, numbers(5, 2))
    assert read(reader, start, reader.latestOffset(start, ALL)) == [5, 6]


def test_available_now_ends_where_it_began(broker: MockKafka) -> None:
    broker.write("orders", 0, numbers(0, 5))
    reader = reader_of(broker)
    start = reader.initialOffset()
    reader.prepareForTriggerAvailableNow()
    broker.write("orders", 0, numbers(5, 5))
    end = reader.latestOffset(start, ALL)
    assert end["orders"]["0"] == 5
    assert reader.latestOffset(end, ALL) == end


def test_a_wrong_value_names_its_place(broker: MockKafka) -> None:
    broker.write("orders", 3, [b'{"id":1}', b'{"id":"x"}'])
    reader = reader_of(broker)
    start = reader.initialOffset()
    with pytest.raises(InputError) as caught:
        read(reader, start, reader.latestOffset(start, ALL))
    assert str(caught.value).startswith("topic orders, partition 3, offset 1: id: must be long")


def test_an_outage_is_waited_for(broker: MockKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.write("orders", 0, numbers(0, 5))
    reader = reader_of(broker)
    start = reader.initialOffset()

    def fail() -> None:
        raise ConnectionError("gone")

    monkeypatch.setattr(reader, "_find_end", fail)
    assert reader.latestOffset(start, ALL) == start
    monkeypatch.setattr(source, "MAX_OUTAGE_S", 0.0)
    with pytest.raises(ConnectionError, match="gone"):
        reader.latestOffset(start, ALL)


def test_a_topic_that_is_missing(broker: MockKafka) -> None:
    broker.write("orders", 0, numbers(0, 1))
    with pytest.raises(InputError, match="topic nothing: does not exist"):
        reader_of(broker, "nothing").initialOffset()
