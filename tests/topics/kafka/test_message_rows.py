"""Topics in Kafka keep the contract of topics with the client's own mock broker, without Java.

It loses receipts; what needs them is tested with a real broker.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.topic_checks import CHECKS, MakeTopic, append
from tests.tools.kafka_mock import PARTITIONS, MockKafka, mock_kafka
from tests.topics.factories import SCHEMA

from penstock.errors import DamagedError, InputError, OutageError, PenstockError
from penstock.topics.embedded.check import check
from penstock.topics.embedded.description import KafkaTopic
from penstock.topics.embedded.topic import Topic
from penstock.topics.kafka import message_reader, transactional_writer
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.cluster import (
    CLUSTER,
    KafkaCluster,
    find_cluster,
    make_cluster,
    save_cluster,
)
from penstock.topics.kafka.message_reader import MessageReader, find_message_reader
from penstock.topics.kafka.segment_messages import TARGET_BYTES, decode_batch, encode_batch


@pytest.fixture(scope="module")
def broker() -> Iterator[MockKafka]:
    with mock_kafka() as broker:
        yield broker
        for producer in transactional_writer._producers.values():
            producer.close()
        transactional_writer._producers.clear()


@pytest.fixture
def make(broker: MockKafka, request: pytest.FixtureRequest) -> MakeTopic:
    """Return a function like `Topic.create`; the broker makes a topic when it is written."""
    prefix = "".join(letter if letter.isalnum() else "-" for letter in request.node.name)

    def create(directory: Path, *about: Any, **more: Any) -> Topic:
        cluster = save_cluster(directory.parent, KafkaCluster(parse_address(broker.url(prefix))))
        broker.write(cluster.receipts.topic, 0, [b""])

        def make_topic(name: str) -> KafkaTopic:
            return KafkaTopic(cluster.topic(name), "id", PARTITIONS)

        return Topic.create(directory, *about, kafka=make_topic, **more)

    return create


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_topic_in_kafka(
    check: Callable[[MakeTopic, Path], None], make: MakeTopic, tmp_path: Path
) -> None:
    check(make, tmp_path / "images")


def test_large_rows_are_several_messages(make: MakeTopic, tmp_path: Path) -> None:
    topic = append(make(tmp_path / "images", SCHEMA), 60_000)
    (commit,) = topic.commits(0, 60_000)
    (segment,) = commit.segments
    assert segment.messages is not None
    assert sum(run.messages for run in segment.messages.runs) > 60_000 * 20 // TARGET_BYTES
    assert segment.messages.start == 0 and segment.messages.end > 1
    assert check(topic) == []


def test_altered_and_missing_messages(make: MakeTopic, tmp_path: Path) -> None:
    topic = append(make(tmp_path / "images", SCHEMA), 10)
    (commit,) = topic.commits(0, 10)
    assert commit.segments[0].messages is not None
    other = replace(commit.segments[0], crc=1)
    with pytest.raises(DamagedError, match=r"partition 0, offset 0: .*altered"):
        topic._rows.verify(other)
    short = replace(commit.segments[0], messages=None)
    with pytest.raises(PenstockError, match="has no messages in Kafka"):
        topic._rows.verify(short)
    with pytest.raises(PenstockError, match="rows in Kafka need a transaction"):
        topic.segment_writer()


def test_a_foreign_message(broker: MockKafka, make: MakeTopic, tmp_path: Path) -> None:
    topic = append(make(tmp_path / "images", SCHEMA), 10)
    (piece,) = topic.pieces(0, 10)
    value = encode_batch(next(piece.read()))
    assert decode_batch("images", value, 10, "here")[0].num_rows == 10
    with pytest.raises(DamagedError, match="here: has 10 rows, expected 9"):
        decode_batch("images", value, 9, "here")
    with pytest.raises(DamagedError, match="here: is no message of Penstock"):
        decode_batch("images", b"{}", 9, "here")


def test_a_broker_that_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_reader, "WAIT_S", 0.01)
    cluster = KafkaCluster(parse_address("kafka://127.0.0.1:1/x"))
    reader = MessageReader(cluster.address, cluster.settings, patience_s=0.05)
    with pytest.raises(OutageError, match=r"topic x.y: no answer from Kafka at 127.0.0.1:1"):
        list(reader.read("x.y", 0, [3]))
    found = find_message_reader(cluster.at("x.y"), cluster.settings)
    assert found is find_message_reader(cluster.at("x.y"), cluster.settings)


def test_the_file_of_a_cluster(tmp_path: Path) -> None:
    topics = tmp_path / "topics"
    assert find_cluster(topics) is None
    first = save_cluster(topics, KafkaCluster(parse_address("kafka://a:1/x")))
    moved = save_cluster(topics, KafkaCluster(parse_address("kafka://b:2,c:3/x")))
    assert first.run == moved.run and find_cluster(topics) == moved
    with pytest.raises(InputError, match=r"--topics: must be the prefix of the run's start"):
        save_cluster(topics, KafkaCluster(parse_address("kafka://b:2/y")))
    (topics / CLUSTER).write_text("{}")
    with pytest.raises(InputError, match="does not say where the topics of the run are"):
        find_cluster(topics)


def test_a_topic_without_its_cluster(make: MakeTopic, tmp_path: Path) -> None:
    make(tmp_path / "images", SCHEMA)
    (tmp_path / CLUSTER).unlink()
    with pytest.raises(InputError, match=r"there is no kafka.json that says where"):
        Topic.open(tmp_path / "images")


def test_addresses_of_topics(tmp_path: Path) -> None:
    assert make_cluster(None) is None
    cluster = make_cluster("kafka://a:1/shop")
    assert cluster is not None and cluster.topic("raw") == "shop.raw"
    for address, properties, message in (
        ("runs/shop", None, "--topics: must be an address of Kafka, got 'runs/shop'"),
        ("kafka://a:1", None, "--topics: has no topic"),
        (None, "client.properties", "--topics properties: are settings of Kafka"),
        ("kafka://a:1/x", str(tmp_path / "none"), "cannot be read"),
    ):
        with pytest.raises(InputError, match=message):
            make_cluster(address, properties, "--topics")


def test_ranges_that_are_read_by_turns(make: MakeTopic, tmp_path: Path) -> None:
    topic = make(tmp_path / "images", SCHEMA)
    append(topic, 30_000)
    append(topic, 30_000)
    (first,), (second,) = (topic.pieces(n, n + 30_000) for n in (0, 30_000))
    both = zip(first.read(["id"]), second.read(["id"]), strict=True)
    sizes = [(left["id"][0].as_py(), right["id"][0].as_py() - 30_000) for left, right in both]
    assert len(sizes) > 1 and all(left == right for left, right in sizes)
