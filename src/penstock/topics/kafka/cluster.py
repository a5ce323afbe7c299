"""The Kafka cluster of a run's topics: brokers, prefix of names, settings, the id of the run.

A file beside the topics of a run says it once for all of them, `kafka.json`. Secrets are in it by
reference only: the path of a properties file, the name of an environment variable. Version 1.
"""

import json
import re
import uuid
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.errors import InputError
from penstock.files.atomic import replace as replace_file
from penstock.topics.kafka.address import KafkaAddress, is_kafka_address, parse_address
from penstock.topics.kafka.client_settings import ClientSettings, make_settings
from penstock.topics.kafka.clients import load_client

CLUSTER = "kafka.json"
VERSION = 1
HINT = "write kafka://host:port/prefix; several brokers as host:port,host:port"
_RUN = re.compile(r"[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class KafkaCluster:
    """Brokers and prefix, settings by reference, and the id of the run that writes there."""

    #: The brokers; its topic is the prefix of all names.
    address: KafkaAddress
    settings: ClientSettings = ClientSettings()
    #: Names the transactions of a run: two runs must not have the same one.
    run: str = ""

    def topic(self, name: str) -> str:
        """Return the name in Kafka of a topic.

        >>> KafkaCluster(parse_address("kafka://a:9092/shop")).topic("orders")
        'shop.orders'
        """
        return f"{self.address.topic}.{name}"

    @property
    def receipts(self) -> KafkaAddress:
        """The topic without messages whose offsets are receipts."""
        return self.at(f"{self.address.topic}-receipts")

    def at(self, topic: str) -> KafkaAddress:
        """Return the address of a topic by its name in Kafka."""
        return replace(self.address, topic=topic)

    def to_json(self) -> dict[str, Any]:
        """Write it as a plain dictionary."""
        return {
            "version": VERSION,
            "address": str(self.address),
            "run": self.run,
            "settings": dict(self.settings.values),
            "properties": self.settings.file,
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> "KafkaCluster":
        """Read what `to_json` wrote; `ValueError` if it is something else."""
        if data["version"] != VERSION or not _RUN.fullmatch(data["run"]):
            raise ValueError
        settings = ClientSettings(data["settings"], data["properties"])
        return cls(parse_address(data["address"]), settings, data["run"])


def make_cluster(
    address: str | None, properties: str | Path | None = None, field: str = "topics"
) -> KafkaCluster | None:
    """Return the cluster that an address names; None without one."""
    if address is None:
        if properties is not None:
            problem = "are settings of Kafka, but the topics are not there"
            raise InputError(f"{field} properties", problem, HINT)
        return None
    if not is_kafka_address(address):
        raise InputError(field, f"must be an address of Kafka, got {address!r}", HINT)
    load_client(field)
    return KafkaCluster(parse_address(address, field), make_settings(properties=properties))


def find_cluster(topics: Path) -> KafkaCluster | None:
    """Return the cluster of a directory of topics; None if their rows are in files."""
    path = topics / CLUSTER
    try:
        data = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError:
        data = None
    try:
        return KafkaCluster.from_json(data)
    except (KeyError, TypeError, ValueError, InputError):
        problem = "does not say where the topics of the run are"
        raise InputError(str(path), problem, "restore it from a backup") from None


def save_cluster(topics: Path, wanted: KafkaCluster) -> KafkaCluster:
    """Note the cluster of a directory of topics; return it with the id of its run.

    Brokers and settings may change from one start to the next, the prefix may not.
    """
    known = find_cluster(topics)
    if known is not None and known.address.topic != wanted.address.topic:
        problem = f"must be the prefix of the run's start, {known.address}, got {wanted.address}"
        raise InputError("--topics", problem, "or begin another run with --out DIR")
    run = uuid.uuid4().hex[:12] if known is None else known.run
    cluster = replace(wanted, run=run)
    if cluster != known:
        topics.mkdir(parents=True, exist_ok=True)
        replace_file(topics / CLUSTER, json.dumps(cluster.to_json(), indent=2).encode() + b"\n")
    return cluster
