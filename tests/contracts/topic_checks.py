"""What every kind of topic does; a kind says how it makes one, with rows in files or in Kafka."""

import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.topics.factories import SCHEMA, ids, rows

from penstock.errors import InputError, TruncatedError
from penstock.topics.embedded.check import check
from penstock.topics.embedded.completeness import complete_ends, mark_complete
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.retention import parse_retention, trim
from penstock.topics.embedded.segment import Segment
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.partition import Partition
from penstock.topics.port import Transaction
from penstock.topics.schema import parse_schema

#: Makes a topic in a directory: schema, and what `Topic.create` takes.
MakeTopic = Callable[..., Topic]


def write(topic: Topic, transaction: Transaction, *parts: pa.Table) -> Segment:
    """Write a segment inside a transaction."""
    writer = topic.segment_writer(transaction)
    for part in parts:
        writer.write(part)
    transaction.deliver()
    segment = writer.close()
    assert segment is not None
    return segment


def append(topic: Topic, count: int, *, batch: int | None = None, **about: Any) -> Topic:
    """Publish one commit with the next numbers."""
    last = topic.last_batch("w")
    number = batch if batch is not None else (0 if last is None else last + 1)
    transaction = topic.begin("w", number)
    segment = write(topic, transaction, rows(range(topic.end, topic.end + count)))
    transaction.commit(b"")
    assert topic.publish("w", number, [segment], about.pop("at", 0.0), **about)
    return topic


def check_order(make: MakeTopic, directory: Path) -> None:
    """Rows come back in order, whatever range is asked for, in other processes, too."""
    topic = make(directory, SCHEMA)
    assert (topic.first, topic.end, topic.refresh()) == (0, 0, 0)
    for size in (3, 1, 4):
        append(topic, size)
    other = Topic.open(directory)
    for start in range(9):
        for end in range(start, 9):
            assert ids(other, start, end) == list(range(start, end))
    assert [batch.schema.names for batch in other.read(0, 2, ["text"])] == [["text"]]
    pieces = pickle.loads(pickle.dumps(other.pieces(2, 7)))
    found = [i for piece in pieces for batch in piece.read(["id"]) for i in batch["id"].to_pylist()]
    assert found == [2, 3, 4, 5, 6] and sum(piece.rows for piece in pieces) == 5
    assert check(other) == []


def check_batches(make: MakeTopic, directory: Path) -> None:
    """A batch is published once; several segments are one commit."""
    topic = make(directory, SCHEMA)
    transaction = topic.begin("w", 0)
    writers = [topic.segment_writer(transaction) for _ in range(3)]
    for number, writer in enumerate(writers):
        writer.write(rows([2 * number, 2 * number + 1]))
    transaction.deliver()
    segments = [segment for writer in writers if (segment := writer.close()) is not None]
    transaction.commit(b"")
    assert topic.publish("w", 0, segments, 5.0)
    assert not topic.publish("w", 0, segments, 6.0)
    assert (topic.end, topic.last_batch("w"), len(topic.commits(0, 6))) == (6, 0, 1)
    assert ids(topic) == [0, 1, 2, 3, 4, 5]
    assert topic.end_bytes == sum(segment.bytes for segment in segments) > 0


def check_aborted(make: MakeTopic, directory: Path) -> None:
    """Rows of an attempt that ends before its commit are in no topic; a writer goes on."""
    topic = make(directory, SCHEMA)
    transaction = topic.begin("w", 0)
    writer = topic.segment_writer(transaction)
    writer.write(rows([7]))
    writer.abort()
    transaction.abort()
    empty = topic.begin("w", 0)
    nothing = topic.segment_writer(empty)
    empty.deliver()
    assert nothing.close() is None
    empty.abort()
    with pytest.raises(InputError, match="column 'text'"):
        topic.segment_writer(topic.begin("w", 0)).write(rows([1]).drop_columns("text"))
    append(topic, 2)
    assert ids(topic) == [0, 1]


def check_slices(make: MakeTopic, directory: Path) -> None:
    """Tasks with disjoint slices read each row once, also of a part of a commit."""
    topic = make(directory, SCHEMA, partition=Partition(key=("id",), slices=8))
    append(topic, 1000)
    append(topic, 30)
    found = []
    for start, end in ((0, 700), (700, 1030)):
        for slices in ([0, 3, 5], [1, 2, 4, 6, 7]):
            for piece in topic.pieces(start, end):
                parts = list(piece.read_slices(slices))
                assert {number for number, _ in parts} <= set(slices)
                found += [i for _, part in parts for i in part.column("id").to_pylist()]
    assert sorted(found) == list(range(1030))


def check_times(make: MakeTopic, directory: Path) -> None:
    """Commits carry event times and the ends of source batches."""
    topic = make(directory, SCHEMA)
    append(topic, 3, is_complete=False)
    append(topic, 2, event_times={"_event": 2_000_000})
    append(topic, 1, is_complete=False)
    first, second, _ = topic.commits(0, 6)
    assert [segment.newest for segment in first.segments] == [{"_event": 2_000_000}]
    assert second.event_times == {"_event": 2_000_000}
    assert list(complete_ends(topic, 0, 6)) == [5]
    mark_complete(topic)
    assert list(complete_ends(topic, 0, 6)) == [5, 6]


def check_retention(make: MakeTopic, directory: Path) -> None:
    """What all readers have read is removed; asking for it is a clear error."""
    topic = make(directory, SCHEMA, parse_retention("read"))
    for _ in range(4):
        append(topic, 2)
    save_position(topic.directory, "fast", 8)
    save_position(topic.directory, "slow", 5)
    assert trim(topic, time.time()) == 4
    assert (topic.first, topic.end) == (4, 8)
    assert ids(Topic.open(directory)) == [4, 5, 6, 7]
    with pytest.raises(TruncatedError, match="row 0 was removed by retention"):
        ids(topic, 0, 2)


def check_writer(make: MakeTopic, directory: Path) -> None:
    """A producer appends rows, and another one continues behind them."""
    topic = make(directory, SCHEMA)
    with TopicWriter(topic, "p") as writer:
        assert writer.append(rows(range(5))) == 5
        assert writer.append(rows(range(5, 6)).drop_columns("_event")) == 6
    with TopicWriter(Topic.open(directory), "p") as writer:
        assert writer.append(rows(range(6, 9))) == 9
    topic.refresh()
    assert ids(topic) == list(range(9)) and topic.last_batch("p") == 2


def check_columns(make: MakeTopic, directory: Path) -> None:
    """Rows from before a column was declared have null there."""
    append(make(directory, SCHEMA), 2)
    topic = make(directory, parse_schema("id long, text string, more double"), may_add=True)
    (batch,) = topic.read(0, 2)
    assert batch.schema == topic.schema and batch["more"].null_count == 2
    again = Topic.open(directory)
    (batch,) = again.read(0, 2, ["more", "id"])
    assert batch.to_pydict() == {"more": [None, None], "id": [0, 1]}


CHECKS = (
    *(check_order, check_batches, check_aborted, check_slices, check_times, check_retention),
    *(check_writer, check_columns),
)
