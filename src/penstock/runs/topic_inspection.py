"""Finds the topics of a directory, follows their rows, and checks them for damage."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from penstock.engines.spark.recovery.batch_record_check import check_records
from penstock.errors import InputError, nearest
from penstock.topics.embedded.check import TopicDamage, check_directory
from penstock.topics.embedded.description import DESCRIPTION
from penstock.topics.embedded.topic import Topic

_POLL_S = 0.2


def find_topics(directory: Path) -> list[Path]:
    """Return the topics of a run, of a directory of topics, or the one that a directory is."""
    if not directory.is_dir():
        raise InputError("DIR", f"there is no directory {str(directory)!r}")
    if (directory / DESCRIPTION).is_file():
        return [directory.resolve()]
    for folder in (directory, directory / "topics"):
        if topics := sorted(file.parent for file in folder.glob(f"*/{DESCRIPTION}")):
            return topics
    hint = f"a topic is a directory with {DESCRIPTION}; give one, their parent, or a run"
    raise InputError("DIR", f"there is no topic in {str(directory)!r}", hint)


def open_topic(directory: Path) -> Topic:
    """Open the only topic of a directory."""
    topics = find_topics(directory)
    if len(topics) > 1:
        names = ", ".join(topic.name for topic in topics)
        raise InputError("DIR", f"contains {len(topics)} topics", f"choose one: {names}")
    return Topic.open(topics[0])


def read_rows(run: Path, name: str, last: int | None = None) -> pa.Table:
    """Return the rows of a topic of a run that retention has kept, or the last ones of them."""
    topics = {path.name: path for path in find_topics(run)}
    if name not in topics:
        raise InputError("topic", f"there is no topic {name!r} in {run}", nearest(name, topics))
    if last is not None and last < 0:
        raise InputError("last", f"must be at least 0, got {last}")
    topic = Topic.open(topics[name])
    start = topic.first if last is None else max(topic.first, topic.end - last)
    return pa.Table.from_batches(topic.read(start, topic.end), topic.schema)


def follow_rows(topic: Topic, rows: int, *, is_endless: bool) -> Iterator[range]:
    """Yield the offsets of the last rows of a topic, and if endless those of all new ones."""
    if rows < 0:
        raise InputError("-n", f"must be at least 0, got {rows}")
    position = max(topic.first, topic.end - rows)
    yield range(position, topic.end)
    while is_endless:
        position = topic.end
        while topic.refresh() == position:
            time.sleep(_POLL_S)
        yield range(max(position, topic.first), topic.end)


def check_topics(directory: Path) -> dict[str, list[TopicDamage]]:
    """Read every byte of the topics and, of a run, its batch records; list damage by name."""
    damage = {topic.name: check_directory(topic) for topic in find_topics(directory)}
    for name, records in check_records(directory).items():
        unknown = range(0)  # which rows a record has named, only the record knows
        damage[name] = [TopicDamage(file=r.file, problem=r.problem, rows=unknown) for r in records]
    return damage
