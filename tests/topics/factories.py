"""Rows and topics for the tests of topics."""

from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa

from penstock.topics.ddl import TIMESTAMP
from penstock.topics.embedded.segment import Segment
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT, parse_schema

SCHEMA = parse_schema("id long, text string")


def rows(ids: Sequence[int]) -> pa.Table:
    """Rows with these numbers, due at as many seconds."""
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": pa.array([f"row {i}" for i in ids], pa.string()),
            EVENT: pa.array([i * 1_000_000 for i in ids], TIMESTAMP),
        }
    )


def segment(topic: Topic, *ids: int) -> Segment:
    """A segment with these rows, not yet published."""
    writer = topic.segment_writer()
    writer.write(rows(ids))
    written = writer.close()
    assert written is not None
    return written


def fill(topic: Topic, *sizes: int, writer: str = "w", at: float = 0.0) -> Topic:
    """Publish commits of so many rows each, numbered from the topic's end on."""
    for size in sizes:
        last = topic.last_batch(writer)
        first = topic.end
        written = segment(topic, *range(first, first + size))
        assert topic.publish(writer, 0 if last is None else last + 1, [written], at)
    return topic


def ids(topic: Topic, start: int | None = None, end: int | None = None) -> list[int]:
    """The numbers of rows [start, end), read back."""
    start = topic.first if start is None else start
    end = topic.end if end is None else end
    return [i for batch in topic.read(start, end) for i in batch.column("id").to_pylist()]


def files(directory: Path) -> list[str]:
    """Names of the segments on disk."""
    return sorted(path.name for path in (directory / "segments").iterdir())
