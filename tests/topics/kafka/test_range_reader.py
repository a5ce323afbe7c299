"""Reads ranges from the broker inside librdkafka: order, ends, positions, what is missing."""

from collections.abc import Iterator

import pytest
from tests.tools.kafka_mock import MockKafka, mock_kafka

from penstock.errors import InputError
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.client_settings import ClientSettings
from penstock.topics.kafka.clients import make_consumer, make_producer
from penstock.topics.kafka.offset_ranges import PartitionRange
from penstock.topics.kafka.partition_offsets import PartitionOffsets
from penstock.topics.kafka.range_reader import RangeReader, find_reader

NONE = ClientSettings()


@pytest.fixture(scope="module")
def broker() -> Iterator[MockKafka]:
    with mock_kafka() as broker:
        broker.write("orders", 0, [b"a%d" % number for number in range(3000)])
        broker.write("orders", 2, [b"c%d" % number for number in range(10)], key=b"k")
        yield broker


@pytest.fixture
def reader(broker: MockKafka) -> Iterator[RangeReader]:
    reader = RangeReader(parse_address(broker.url("orders")), NONE, patience_s=0.5)
    yield reader
    reader.close()


def values(reader: RangeReader, *ranges: PartitionRange) -> list[bytes | None]:
    return [v for part in ranges for block in reader.read(part) for v in block.values]


def test_offsets(broker: MockKafka) -> None:
    offsets = PartitionOffsets(parse_address(broker.url("orders")), NONE)
    partitions = offsets.list_partitions()
    assert partitions == [0, 1, 2, 3]
    assert offsets.first(partitions) == dict.fromkeys(partitions, 0)
    assert offsets.end(partitions) == {0: 3000, 1: 0, 2: 10, 3: 0}
    assert offsets.end([]) == {}


def test_ranges_of_several_partitions(reader: RangeReader) -> None:
    ranges = (PartitionRange(0, 5, 8), PartitionRange(2, 0, 2), PartitionRange(0, 8, 10))
    assert values(reader, *ranges) == [b"a5", b"a6", b"a7", b"c0", b"c1", b"a8", b"a9"]


def test_one_range_after_the_other(reader: RangeReader) -> None:
    ranges = [PartitionRange(0, first, first + 700) for first in range(0, 2800, 700)]
    assert values(reader, *ranges) == [b"a%d" % number for number in range(2800)]


def test_a_range_up_to_the_end_is_complete(reader: RangeReader) -> None:
    assert len(values(reader, PartitionRange(0, 0, 3000))) == 3000
    assert values(reader, PartitionRange(2, 9, 10)) == [b"c9"]
    (block,) = reader.read(PartitionRange(2, 8, 10))
    assert (block.topic, block.partition, list(block.offsets)) == ("orders", 2, [8, 9])
    assert list(block.keys) == [b"k", b"k"]


def test_offsets_behind_the_end_are_waited_for(reader: RangeReader) -> None:
    with pytest.raises(TimeoutError, match="topic orders, partition 2, offset 10: no message"):
        values(reader, PartitionRange(2, 9, 12))


def test_a_process_has_one_reader(broker: MockKafka) -> None:
    address = parse_address(broker.url("orders"))
    first = find_reader(address, NONE, "read_committed", "fail")
    assert find_reader(address, NONE, "read_committed", "fail") is first
    assert find_reader(address, NONE, "read_uncommitted", "fail") is not first


def test_a_wrong_setting_is_named() -> None:
    address = parse_address("kafka://127.0.0.1:1/t")
    with pytest.raises(InputError, match=r'settings: .*"no\.such\.thing"'):
        make_consumer(address, ClientSettings({"no.such.thing": "1"}), "read_committed")
    with pytest.raises(InputError, match=r"settings: .*ca\.location"):
        values = {"security.protocol": "ssl", "ssl.ca.location": "/no/such.pem"}
        make_producer(address, ClientSettings(values))


def test_a_broker_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.topics.kafka.partition_offsets.REQUEST_S", 0.3)
    offsets = PartitionOffsets(parse_address("kafka://127.0.0.1:1/t"), NONE)
    with pytest.raises(ConnectionError, match=r"Kafka at 127\.0\.0\.1:1, topic t"):
        offsets.list_partitions()
    with pytest.raises(ConnectionError, match=r"Kafka at 127\.0\.0\.1:1"):
        offsets.end([0])
