"""Where the rows of a run are: what a start refuses, before anything runs."""

import uuid
from pathlib import Path

import pytest
from tests.contracts.topic_checks import append
from tests.kafka.topics import delete_before
from tests.tools.kafka_broker import KafkaBroker
from tests.topics.factories import ids

from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.topic import Topic
from penstock.topics.kafka import topic_setup
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.cluster import KafkaCluster
from penstock.topics.kafka.topic_setup import delete_kafka_topics, find_first_offsets

pytestmark = pytest.mark.kafka


@pytest.fixture
def address(broker: KafkaBroker) -> str:
    return broker.url(f"place-{uuid.uuid4().hex[:8]}")


def shop(address: str | None) -> Pipeline:
    """A pipeline with one topic that another process fills."""
    pipeline = Pipeline("shop", topics=address)
    pipeline.topic("raw", "id long, text string", external=True)
    return pipeline


def start(run: Path, address: str | None) -> Topic:
    """Make or check the topics of a run."""
    make_topics(shop(address), RunLayout(run))
    return Topic.open(run / "topics" / "raw")


def refuse(run: Path, address: str | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        start(run, address)


def test_another_place_is_refused(tmp_path: Path, address: str) -> None:
    append(start(tmp_path / "kafka", address), 3)
    assert ids(start(tmp_path / "kafka", address)) == [0, 1, 2]
    refuse(tmp_path / "kafka", None, "--topics: the rows of this run are in Kafka, at kafka://")
    refuse(tmp_path / "kafka", f"{address}-2", "--topics: must be the prefix of the run's start")
    refuse(tmp_path / "other", address, r"raw: has rows already.* another run has written there")
    start(tmp_path / "files", None)
    refuse(tmp_path / "files", address, "--topics: must not be given: the rows of this run are in")
    refuse(tmp_path / "new", "kafka://127.0.0.1:1/x", "--topics: Kafka at 127.0.0.1:1")


def test_topics_that_are_gone_are_refused(tmp_path: Path, address: str) -> None:
    append(start(tmp_path, address), 3)
    delete_kafka_topics(KafkaCluster(parse_address(address)))
    refuse(tmp_path, address, "raw: does not exist any more")
    start(tmp_path / "another", address)
    refuse(tmp_path, address, "raw: was deleted and made anew: its id was")


def test_rows_that_nobody_has_read_are_missed(
    tmp_path: Path, broker: KafkaBroker, address: str
) -> None:
    topic = start(tmp_path, address)
    for _ in range(3):
        append(topic, 2)
    save_position(topic.directory, "reader", 2)
    assert topic.kafka is not None
    name, cluster = topic.kafka.topic, KafkaCluster(parse_address(address))
    second = topic.commits(2, 4)[0].segments[0].messages
    assert second is not None
    delete_before(broker, name, {second.partition: second.start})
    assert find_first_offsets(cluster, name)[second.partition] == second.start
    assert ids(start(tmp_path, address), 2, 6) == [2, 3, 4, 5]
    delete_before(broker, name, {second.partition: second.end})
    refuse(tmp_path, address, f"{name}: partition 0: rows up to offset .* were not read, but Kafka")
    with pytest.raises(InputError, match=r"partition 0: offset .* was removed before it was read"):
        ids(topic, 2, 6)


def test_rows_that_were_read_are_removed_from_the_brokers(tmp_path: Path, address: str) -> None:
    topic = start(tmp_path, address)
    for _ in range(3):
        append(topic, 2)
    assert topic.remove_before(4) == 4 and topic.kafka is not None
    left = topic.commits(4, 6)[0].segments[0].messages
    assert left is not None
    cluster, name = KafkaCluster(parse_address(address)), topic.kafka.topic
    for _ in range(100):
        first = find_first_offsets(cluster, name)[left.partition]
        if first > 0:
            break
    assert 0 < first <= left.start
    topic_setup.delete_messages(cluster, f"{name}-none", {0: 1})  # only noted
