"""Topics whose rows are in Kafka keep the contract of topics, against a real broker."""

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.contracts.topic_checks import CHECKS, MakeTopic
from tests.tools.kafka_broker import KafkaBroker

from penstock.topics.embedded.description import KafkaTopic
from penstock.topics.embedded.topic import Topic
from penstock.topics.kafka.address import parse_address
from penstock.topics.kafka.cluster import KafkaCluster, save_cluster
from penstock.topics.kafka.topic_setup import make_kafka_topic

pytestmark = pytest.mark.kafka


def topic_maker(broker: KafkaBroker) -> MakeTopic:
    """Return a function like `Topic.create`, for topics under a prefix of their own."""
    prefix = f"contract-{uuid.uuid4().hex[:8]}"

    def create(directory: Path, *about: Any, **more: Any) -> Topic:
        address = parse_address(broker.url(prefix))
        cluster = save_cluster(directory.parent, KafkaCluster(address))
        make_kafka_topic(cluster, cluster.receipts.topic)

        def make(name: str) -> KafkaTopic:
            return make_kafka_topic(cluster, cluster.topic(name))

        return Topic.create(directory, *about, kafka=make, **more)

    return create


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_a_topic_in_kafka(
    check: Callable[[MakeTopic, Path], None], broker: KafkaBroker, tmp_path: Path
) -> None:
    check(topic_maker(broker), tmp_path / "images")
