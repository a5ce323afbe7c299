"""What other processes do in the tests of topics."""

import multiprocessing
import os
import resource
import time
from multiprocessing.connection import Connection
from pathlib import Path

from tests.topics.factories import rows, segment

from penstock.errors import FullError, LockedError, TruncatedError
from penstock.files.lock import Lock
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

#: Children are forked from a clean process that has loaded everything, so they start at once.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    ["penstock.topics.embedded.writer", "pyarrow.compute", "pandas", "pytest"]
)


def append_for_ever(directory: Path, report: Connection) -> None:
    """Append rows numbered by their offset; report the end after each append."""
    topic = Topic.open(directory)
    with TopicWriter(topic, "w") as writer:
        while True:
            report.send(writer.append(rows(range(topic.end, topic.end + 7))))


def publish_all(directory: Path, start: Path, batches: int, report: Connection) -> None:
    """Publish the same batches of the same writer as somebody else; report which were ours."""
    topic = Topic.open(directory)
    report.send("ready")
    while not start.exists():
        time.sleep(0.0001)
    mine = [topic.publish("w", b, [segment(topic, b)], at=0.0) for b in range(batches)]
    report.send([batch for batch, ours in enumerate(mine) if ours])


def hold(path: Path, report: Connection) -> None:
    """Take the lock, hand it to a child of our own, and wait."""
    lock = Lock(path)
    lock.acquire()
    child = os.fork()
    report.send(child or os.getpid())
    time.sleep(60)


def try_lock(path: Path, report: Connection) -> None:
    """Report whether the lock could be had."""
    try:
        with Lock(path):
            report.send("")
    except LockedError as error:
        report.send(str(error))


def follow(directory: Path, upto: int, report: Connection) -> None:
    """Read everything as it comes, as a reader that is not registered; report what was seen."""
    topic = Topic.open(directory)
    position, truncated, wrong = 0, 0, 0
    report.send("ready")
    while position < upto:
        end = min(topic.refresh(), upto)
        try:
            for batch in topic.read(position, end):
                expected = range(position, position + batch.num_rows)
                wrong += batch.column("id").to_pylist() != list(expected)
                position = expected.stop
        except TruncatedError as error:
            truncated += 1
            position = max(position, error.first)
    report.send((position, truncated, wrong))


def fill_files(directory: Path, report: Connection) -> None:
    """Write until files may not grow any more, then go on with fewer rows."""
    topic = Topic.open(directory)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    with TopicWriter(topic, "w") as writer:
        ends = [writer.append(rows(range(100)))]
        try:
            writer.append(rows(range(100, 2000)))
        except FullError as error:
            report.send(str(error))
        ends.append(writer.append(rows(range(100, 200))))
    report.send(ends)
