"""Where the rows of a run's topics are: noted at its first start, checked at every other one."""

from collections.abc import Callable

from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.description import DESCRIPTION, KafkaTopic
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.topic import Topic
from penstock.topics.kafka.cluster import KafkaCluster, find_cluster, save_cluster
from penstock.topics.kafka.topic_setup import (
    check_kafka_topic,
    find_first_offsets,
    make_kafka_topic,
)

#: Commits that are searched for the next offset of each partition.
MAX_COMMITS = 100


def place_topics(pipeline: Pipeline, layout: RunLayout) -> None:
    """Note or check where the topics of a run are; `InputError` if they are elsewhere."""
    known, wanted = find_cluster(layout.topics), pipeline.cluster
    if wanted is None:
        if known is not None:
            problem = f"the rows of this run are in Kafka, at {known.address}"
            raise InputError("--topics", problem, f"resume it with --topics {known.address}")
        return
    topics = [Topic.open(path.parent) for path in layout.topics.glob(f"*/{DESCRIPTION}")]
    if known is None and topics:
        problem = f"must not be given: the rows of this run are in {layout.topics}"
        raise InputError("--topics", problem, "leave it out, or begin another run with --out DIR")
    cluster = save_cluster(layout.topics, wanted)
    try:
        make_kafka_topic(cluster, cluster.receipts.topic)
        for topic in topics:
            if topic.kafka is not None:
                check_kafka_topic(cluster, topic.kafka)
                _check_kept(cluster, topic, topic.kafka)
    except (ConnectionError, TimeoutError) as error:
        hint = "start the brokers, or correct the address; nothing is lost"
        raise InputError("--topics", str(error), hint) from None


def find_topic_maker(layout: RunLayout) -> Callable[[str], KafkaTopic] | None:
    """Return the function that makes a topic in Kafka; None if rows are in files."""
    cluster = find_cluster(layout.topics)
    if cluster is None:
        return None
    return lambda name: make_kafka_topic(cluster, cluster.topic(name))


def _check_kept(cluster: KafkaCluster, topic: Topic, kafka: KafkaTopic) -> None:
    """Raise `InputError` if the brokers have removed rows that an operator has not read."""
    start = max(topic.first, min(positions(topic.directory).values(), default=topic.first))
    first = find_first_offsets(cluster, kafka.topic)
    checked: set[int] = set()
    for number, commit in enumerate(topic.commits(start, topic.end)):
        if number >= MAX_COMMITS or len(checked) == kafka.partitions:
            return
        for place in (segment.messages for segment in commit.segments):
            if place is None or place.partition in checked:
                continue
            checked.add(place.partition)
            if place.end <= first.get(place.partition, 0):
                problem = (
                    f"partition {place.partition}: rows up to offset {place.end - 1} were not read,"
                    f" but Kafka has removed what is before {first[place.partition]}"
                )
                hint = "they are lost: begin another run; set retention.ms=-1 for the topic"
                raise InputError(f"topic {kafka.topic}", problem, hint)
