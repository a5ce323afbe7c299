"""Topics of a run in Kafka: made and checked at the start, their read messages removed."""

import logging
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from penstock.errors import InputError
from penstock.extras import import_optional
from penstock.topics.embedded.description import KafkaTopic
from penstock.topics.kafka.clients import load_client, make_admin, translate_error
from penstock.topics.kafka.cluster import KafkaCluster
from penstock.topics.kafka.partition_offsets import UNCOMMITTED, PartitionOffsets

_LOG = logging.getLogger(__name__)
#: Seconds to wait for a new topic, and for other answers of an administrator.
CREATE_S, ADMIN_S = 20.0, 10.0
#: Penstock removes what was read; brokers must not remove what was not.
CONFIG = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "max.message.bytes": str(16 << 20),
}


def make_kafka_topic(cluster: KafkaCluster, topic: str) -> KafkaTopic:
    """Make a topic, unless there is an empty one.

    `InputError` if it has rows, which are of another run.
    """
    address = cluster.at(topic)
    offsets = PartitionOffsets(address, cluster.settings, UNCOMMITTED)
    if _find_topic(cluster, topic) is None:
        _create(cluster, topic)
    partitions = _wait_for_leaders(offsets)
    if any(offsets.end(partitions).values()):
        problem = f"has rows already, at {address.bootstrap}: another run has written there"
        hint = "choose another prefix, as in kafka://host:port/prefix, or delete the topic"
        raise InputError(f"topic {topic}", problem, hint)
    return KafkaTopic(topic, describe_topic(cluster, topic), len(partitions))


def check_kafka_topic(cluster: KafkaCluster, known: KafkaTopic) -> None:
    """Raise `InputError` if a topic of a run is gone or was made anew."""
    address, hint = cluster.at(known.topic), "its rows are gone: begin another run with --out DIR"
    if _find_topic(cluster, known.topic) is None:
        problem = f"does not exist any more at {address.bootstrap}"
        raise InputError(f"topic {known.topic}", problem, hint)
    new_id = describe_topic(cluster, known.topic)
    if new_id != known.id:
        problem = f"was deleted and made anew: its id was {known.id}, now it is {new_id}"
        raise InputError(f"topic {known.topic}", problem, hint)


def find_first_offsets(cluster: KafkaCluster, topic: str) -> dict[int, int]:
    """Return the first offset of each partition that the brokers have kept."""
    offsets = PartitionOffsets(cluster.at(topic), cluster.settings, UNCOMMITTED)
    return offsets.first(offsets.list_partitions())


def describe_topic(cluster: KafkaCluster, topic: str) -> str:
    """Return the id that Kafka gave a topic when it was made."""
    client = load_client()
    names = client.TopicCollection(topic_names=[topic])
    try:
        answer = _admin(cluster).describe_topics(names, request_timeout=ADMIN_S)[topic]
        return str(answer.result(ADMIN_S).topic_id)
    except (client.KafkaException, TimeoutError) as error:
        raise translate_error(error, cluster.at(topic), is_known=True) from None


def delete_kafka_topics(cluster: KafkaCluster) -> None:
    """Delete all topics of a prefix; as far as the brokers answer."""
    client = load_client()
    with suppress(client.KafkaException, TimeoutError):
        known = _admin(cluster).list_topics(timeout=ADMIN_S).topics
        names = [name for name in known if name.startswith(f"{cluster.address.topic}.")]
        names += [name for name in known if name == cluster.receipts.topic]
        for answer in _admin(cluster).delete_topics(names).values() if names else ():
            answer.result(ADMIN_S)


def delete_messages(cluster: KafkaCluster, topic: str, ends: Mapping[int, int]) -> None:
    """Let the brokers remove messages before these offsets; does not wait for their answer."""
    client = load_client()
    places = [client.TopicPartition(topic, number, end) for number, end in ends.items()]
    if not places:
        return
    try:
        answers = _admin(cluster).delete_records(places, request_timeout=ADMIN_S)
    except client.KafkaException as error:
        _LOG.warning("%s: rows that were read are not removed: %s", topic, error)
        return
    for answer in answers.values():
        answer.add_done_callback(lambda done: _note_failure(topic, done))


def _note_failure(topic: str, answer: Any) -> None:
    if (error := answer.exception()) is not None:
        _LOG.warning("%s: rows that were read are not removed: %s", topic, error)


def _find_topic(cluster: KafkaCluster, topic: str) -> Any:
    """Return what the brokers say about a topic; None if there is none."""
    client = load_client()
    try:
        # all topics: asking for one makes it, where brokers are set up so
        metadata = _admin(cluster).list_topics(timeout=ADMIN_S).topics.get(topic)
    except client.KafkaException as error:
        raise translate_error(error, cluster.at(topic)) from None
    return None if metadata is None or metadata.error is not None else metadata


def _create(cluster: KafkaCluster, topic: str) -> None:
    module, client = import_optional("confluent_kafka.admin", "Kafka"), load_client()
    # -1: the defaults of the brokers
    new = module.NewTopic(topic, num_partitions=-1, replication_factor=-1, config=CONFIG)
    try:
        _admin(cluster).create_topics([new], operation_timeout=CREATE_S)[topic].result(CREATE_S)
    except client.KafkaException as error:
        if error.args[0].code() != client.KafkaError.TOPIC_ALREADY_EXISTS:
            raise translate_error(error, cluster.at(topic)) from None


def _wait_for_leaders(offsets: PartitionOffsets) -> list[int]:
    """Return the partitions of a new topic, as soon as the brokers know them."""
    deadline = time.monotonic() + CREATE_S
    while True:
        try:
            partitions = offsets.list_partitions()
            offsets.end(partitions)
            return partitions
        except (InputError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


_admins: dict[tuple[object, ...], Any] = {}


def _admin(cluster: KafkaCluster) -> Any:
    """Return the administrator of this process."""
    given = tuple(sorted(cluster.settings.to_options().items()))
    key = (os.getpid(), cluster.address.servers, given)
    if key not in _admins:
        _admins[key] = make_admin(cluster.address, cluster.settings)
    return _admins[key]
