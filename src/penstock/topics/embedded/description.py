"""`topic.json`: schema, retention and partition of a topic. Version 2; in Kafka, version 3.

Version 2 has `added`: nullable columns that were declared after the topic was made. Segments
from before lack them, and readers fill in null. A file of version 1 has none. Version 3 has
`kafka`: the rows are messages of a Kafka topic, and files only name them.
"""

import base64
import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.errors import DamagedError, InputError
from penstock.files.atomic import link_new, sync_directory, write_temporary
from penstock.topics.embedded.commit import COMMITS
from penstock.topics.embedded.readers import READERS
from penstock.topics.embedded.retention import Retention
from penstock.topics.embedded.segment import SEGMENTS
from penstock.topics.partition import Partition
from penstock.topics.schema import compare_schemas, first_difference, with_event

VERSION, KAFKA_VERSION = 2, 3
_READABLE = (1, VERSION, KAFKA_VERSION)
DESCRIPTION = "topic.json"
#: The hint if a topic has another schema.
OTHER_NAME = "give the topic another name, or remove the old one"


@dataclass(frozen=True, slots=True)
class KafkaTopic:
    """A topic of Kafka: its name, and the id that tells it from an earlier one of that name."""

    topic: str
    id: str
    #: The partitions that are written; more may be added, and stay empty.
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """The description of a topic."""

    schema: pa.Schema
    retention: Retention
    partition: Partition | None = None
    #: Columns that older segments may lack.
    added: tuple[str, ...] = ()
    #: Where its rows are, if not in files.
    kafka: KafkaTopic | None = None

    def to_bytes(self, name: str) -> bytes:
        """Return the content of the file."""
        data = {
            "version": VERSION if self.kafka is None else KAFKA_VERSION,
            "name": name,
            "schema": base64.b64encode(self.schema.serialize().to_pybytes()).decode(),
            "retention": self.retention.to_json(),
        }
        if self.partition is not None:
            data["partition"] = self.partition.to_json()
        if self.added:
            data["added"] = list(self.added)
        if self.kafka is not None:
            data["kafka"] = asdict(self.kafka)
        return json.dumps(data, indent=2).encode() + b"\n"


def read_description(directory: Path) -> Description:
    """Read the description of a topic."""
    path = directory / DESCRIPTION
    if not path.is_file():
        problem = "is not a topic" if directory.is_dir() else "there is no such directory"
        raise InputError("", problem, f"a topic is a directory with {DESCRIPTION}", str(directory))
    try:
        data: dict[str, Any] = json.loads(path.read_bytes())
        version = data["version"]
        if version not in _READABLE:
            problem = f"cannot read version {version}, only {KAFKA_VERSION} and older ones"
            raise InputError("version", problem, where=str(path))
        schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(data["schema"], validate=True)))
        partition, kafka = data.get("partition"), data.get("kafka")
        return Description(
            schema=schema,
            retention=Retention.from_json(data["retention"]),
            partition=None if partition is None else Partition.from_json(partition),
            added=tuple(data.get("added", ())),
            kafka=None if kafka is None else KafkaTopic(**kafka),
        )
    except (ValueError, KeyError, TypeError, OSError):
        raise DamagedError(directory.name, DESCRIPTION, "is no description of a topic") from None


def create_directory(directory: Path, written: bytes) -> None:
    """Create the folders and the description of a topic, unless another process just has."""
    try:
        for folder in (SEGMENTS, COMMITS, READERS):
            (directory / folder).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError, PermissionError) as error:
        problem = f"cannot be a topic: {error.strerror}"
        raise InputError("", problem, where=str(directory)) from None
    path = directory / DESCRIPTION
    temporary = write_temporary(path, written)
    try:
        link_new(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_directory(directory)
    sync_directory(directory.parent)


def check_topic(directory: Path, schema: pa.Schema, partition: Partition | None = None) -> None:
    """Raise `InputError` if a topic does not fit these columns and this partition."""
    new = Description(schema=with_event(schema), retention=Retention(), partition=partition)
    merge_descriptions(read_description(directory), new, None, directory, may_add=True)


def merge_descriptions(
    old: Description,
    new: Description,
    retention: Retention | None,
    directory: Path,
    *,
    may_add: bool,
) -> Description:
    """Return the updated description, or raise `InputError` if existing rows do not fit it."""
    added, difference = compare_schemas(old.schema, new.schema)
    if added and not may_add:
        difference = first_difference(new.schema, old.schema)
    if difference:
        raise InputError("schema", difference, OTHER_NAME, str(directory))
    if new.partition not in (None, old.partition):
        current, wanted = _partition_text(old.partition), _partition_text(new.partition)
        problem = f"is partitioned by {current}, and the operators that read it now need {wanted}"
        hint = "rows that are there keep their partition: let the operators read another topic"
        raise InputError("partition", problem, hint, str(directory))
    return Description(
        schema=new.schema,
        retention=retention or old.retention,
        partition=old.partition,
        added=(*old.added, *added),
        kafka=old.kafka,
    )


def _partition_text(partition: Partition | None) -> str:
    if partition is None:
        return "nothing"
    return f"{', '.join(partition.key)} into {partition.slices} slices"
