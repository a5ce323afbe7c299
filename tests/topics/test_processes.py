"""Real processes: killed while they write, writing at once, reading while rows are removed."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from tests.topics import children
from tests.topics.factories import files, fill, ids

from penstock.errors import LockedError
from penstock.files.lock import Lock
from penstock.topics.embedded.check import check
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.retention import remove_leftovers, trim
from penstock.topics.embedded.topic import Topic

KILLS = 40
WAIT_S = 30


@contextmanager
def child(target: Callable[..., None], *args: Any) -> Iterator[tuple[Any, Connection]]:
    """A process and where it reports to; killed at the end."""
    ours, theirs = children.CONTEXT.Pipe(duplex=False)
    process = children.CONTEXT.Process(target=target, args=(*args, theirs))
    process.start()
    theirs.close()
    try:
        yield process, ours
    finally:
        process.kill()
        process.join()
        process.close()
        ours.close()


def told(report: Connection) -> Any:
    assert report.poll(WAIT_S)
    return report.recv()


@pytest.mark.slow
def test_a_writer_killed_at_any_moment_loses_nothing_and_doubles_nothing(topic: Topic) -> None:
    draw = random.Random(1)
    reported = 0
    for _ in range(KILLS):
        with child(children.append_for_ever, topic.directory) as (process, report):
            reported = told(report)
            time.sleep(draw.uniform(0, 0.03))
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            while report.poll():
                try:
                    reported = report.recv()
                except EOFError:
                    break
        reopened = Topic.open(topic.directory)
        # the one commit that was made but not reported may be there
        assert reopened.end in (reported, reported + 7)
        assert ids(reopened, 0) == list(range(reopened.end))
        assert check(reopened) == []
    later = time.time() + 3600
    left = len(files(topic.directory)) - reopened.end // 7
    assert remove_leftovers(reopened, later) >= left
    assert len(files(topic.directory)) == reopened.end // 7
    assert check(reopened) == []


@pytest.mark.slow
def test_two_who_publish_the_same_batches_publish_each_once(topic: Topic, tmp_path: Path) -> None:
    start, batches = tmp_path / "start", 200
    args = (children.publish_all, topic.directory, start, batches)
    with child(*args) as (_, one), child(*args) as (_, other):
        assert (told(one), told(other)) == ("ready", "ready")
        start.touch()
        mine, others = told(one), told(other)
    assert sorted(mine + others) == list(range(batches))
    topic.refresh()
    assert ids(topic) == list(range(batches)) and check(topic) == []


@pytest.mark.slow
def test_a_reader_beside_retention_sees_every_row_right_or_is_told(topic: Topic) -> None:
    with child(children.follow, topic.directory, 1500) as (_, report):
        assert told(report) == "ready"
        for _ in range(300):
            fill(topic, 5)
            save_position(topic.directory, "fast", topic.end)
            trim(topic, now=0.0)
        position, _, wrong = told(report)
    assert (position, wrong) == (1500, 0)
    assert len(files(topic.directory)) == 1 and check(topic) == []


def test_a_killed_holder_frees_the_lock_but_its_child_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "topic" / "lock"
    path.parent.mkdir()
    with child(children.hold, path) as (process, report):
        grandchild = next(pid for pid in (told(report), told(report)) if pid != process.pid)
        try:
            with pytest.raises(LockedError, match=f"^topic: process {process.pid} writes there"):
                Lock(path).acquire()
            os.kill(process.pid, signal.SIGKILL)
            process.join()
            with pytest.raises(LockedError, match=f"a process that {process.pid} has started"):
                Lock(path).acquire()
        finally:
            os.kill(grandchild, signal.SIGKILL)
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            try:
                with Lock(path):
                    return
            except LockedError:
                time.sleep(0.01)
    pytest.fail("the lock was not freed")


def test_a_program_that_inherits_the_descriptor_keeps_the_lock(tmp_path: Path) -> None:
    lock = Lock(tmp_path / "lock")
    lock.acquire()
    wait = [sys.executable, "-c", "input()"]
    with subprocess.Popen(wait, stdin=subprocess.PIPE, pass_fds=[lock.fileno()]) as heir:
        lock.release()
        with pytest.raises(LockedError):
            lock.acquire()
        assert heir.stdin is not None
        heir.stdin.write(b"\n")
    with lock:
        assert lock.fileno() >= 0
    assert lock.fileno() == -1


def test_a_lock_is_not_had_twice(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with Lock(path):
        with child(children.try_lock, path) as (_, report):
            assert f"process {os.getpid()} writes there" in told(report)
        with pytest.raises(LockedError):
            Lock(path).acquire()
    with child(children.try_lock, path) as (_, report):
        assert told(report) == ""


def test_a_file_that_cannot_grow_stops_the_writer_and_loses_nothing(topic: Topic) -> None:
    with child(children.fill_files, topic.directory) as (_, report):
        assert told(report) == (
            "topic images: File too large; nothing committed is lost: make space and write again"
        )
        assert told(report) == [100, 200]
    topic.refresh()
    assert ids(topic) == list(range(200)) and check(topic) == []
    assert len(files(topic.directory)) == 2


SMALL_DISK = """
mount -t tmpfs -o size=200k tmpfs "$1" && exec "$2" - "$1" <<'END'
import sys
from pathlib import Path
from penstock.errors import FullError
from penstock.topics.embedded.check import check
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.embedded.readers import save_position
from tests.topics.factories import SCHEMA, files, ids, rows
topic = Topic.create(Path(sys.argv[1]) / "images", SCHEMA)
ends = []
with TopicWriter(topic, "w") as writer:
    try:
        while True:
            ends.append(writer.append(rows(range(topic.end, topic.end + 500))))
    except FullError as error:
        print(error)
    assert ids(topic, 0) == list(range(ends[-1])) and check(topic) == []
    assert len(files(topic.directory)) == len(ends) > 3
    save_position(topic.directory, "reader", topic.end)
    assert writer.append(rows(range(topic.end, topic.end + 500))) == ends[-1] + 500
    assert topic.first == ends[-2]
    assert ids(topic) == list(range(ends[-2], ends[-1] + 500)) and check(topic) == []
END
"""


@pytest.mark.slow
def test_a_full_disk_stops_the_writer_until_there_is_space(tmp_path: Path) -> None:
    own_mounts = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    try:
        subprocess.run([*own_mounts, "mount -t tmpfs tmpfs /mnt"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this machine lets nobody mount a small disk")
    command = [*own_mounts, SMALL_DISK, "sh", str(tmp_path), sys.executable]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout == (
        "topic images: No space left on device; nothing committed is lost:"
        " make space and write again\n"
    )
