"""Chooses where the rows of a topic are: in files of its directory, or in Kafka."""

from pathlib import Path

from penstock.errors import InputError
from penstock.topics.embedded.description import Description
from penstock.topics.embedded.file_rows import FileRows
from penstock.topics.kafka.cluster import CLUSTER, find_cluster
from penstock.topics.kafka.message_rows import MessageRows
from penstock.topics.port import RowStore


def open_rows(directory: Path, description: Description) -> RowStore:
    """Return the rows of a topic by its description."""
    if description.kafka is None:
        return FileRows(directory)
    cluster = find_cluster(directory.parent)
    if cluster is None:
        problem = f"its rows are in Kafka, but there is no {CLUSTER} that says where"
        raise InputError("", problem, "restore it from a backup", str(directory))
    return MessageRows(directory, cluster, description.kafka.topic, description.kafka.partitions)
