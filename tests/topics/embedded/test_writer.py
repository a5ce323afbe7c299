"""The writer of a topic."""

import errno
import json
import os
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pytest
from tests.topics.factories import files, fill, ids, rows, segment

from penstock.errors import (
    DamagedError,
    FullError,
    InputError,
    LockedError,
    OutageError,
    TopicError,
)
from penstock.topics.embedded.check import check
from penstock.topics.embedded.file_rows import FileTransaction
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.segment import FileSegmentWriter
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter


class Clock:
    """A clock that stands still until it is set."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def test_appends_are_there_for_others_when_they_return(topic: Topic) -> None:
    other = Topic.open(topic.directory)
    with TopicWriter(topic, "w") as writer:
        assert writer.append(rows([0, 1])) == 2 and other.refresh() == 2
        assert writer.append(rows([])) == 2 and other.refresh() == 2
        assert writer.append(rows([2])) == 3 and ids(other, 0, 3) == [0, 1, 2]


def test_rows_without_a_time_were_due_now(topic: Topic) -> None:
    with TopicWriter(topic, "w", Clock(1700000000.25)) as writer:
        writer.append(rows([0, 1]).drop(["_event"]))
        writer.append(rows([2]))
    stamps = pa.Table.from_batches(topic.read(0, 3)).column("_event").cast(pa.int64())
    assert stamps.to_pylist() == [1700000000250000, 1700000000250000, 2000000]
    assert topic.newest is not None and topic.newest.at == 1700000000.25


def test_batches_go_on_where_the_last_writer_of_the_name_stopped(topic: Topic) -> None:
    for _ in range(2):
        with TopicWriter(topic, "w") as writer:
            writer.append(rows([0]))
            writer.append(rows([0]))
    assert topic.last_batch("w") == 3


def test_one_writer_at_a_time(topic: Topic) -> None:
    with TopicWriter(topic, "w") as writer:
        with pytest.raises(LockedError), TopicWriter(Topic.open(topic.directory), "v"):
            pass
        writer.append(rows([0]))
    with TopicWriter(topic, "v") as writer:
        writer.append(rows([1]))
    with pytest.raises(TopicError, match="is not locked"):
        writer.append(rows([2]))


def test_others_may_publish_between_two_appends(topic: Topic) -> None:
    with TopicWriter(topic, "w") as writer:
        writer.append(rows([0]))
        fill(Topic.open(topic.directory), 1, writer="operator")
        assert writer.append(rows([2])) == 3
    assert ids(topic) == [0, 1, 2]


def test_somebody_else_with_our_name_is_noticed(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    close = FileSegmentWriter.close

    def meanwhile(writer: FileSegmentWriter) -> object:
        monkeypatch.setattr(FileSegmentWriter, "close", close)
        fill(Topic.open(topic.directory), 1, writer="w")
        return close(writer)

    with TopicWriter(topic, "w") as writer:
        monkeypatch.setattr(FileSegmentWriter, "close", meanwhile)
        with pytest.raises(TopicError, match="another process publishes as 'w'"):
            writer.append(rows([0]))
        assert writer.append(rows([1])) == 2
    assert len(files(topic.directory)) == 2


def test_wrong_rows_append_nothing(topic: Topic) -> None:
    with TopicWriter(topic, "w") as writer:
        with pytest.raises(InputError, match="column 'id': expected long, found string"):
            writer.append(pa.table({"id": ["a"], "text": ["b"]}))
        assert writer.append(rows([0])) == 1
    assert len(files(topic.directory)) == 1


def test_retention_is_applied_at_most_once_a_second(topic: Topic) -> None:
    clock = Clock(100.0)
    with TopicWriter(topic, "w", clock) as writer:
        for now, first in ((100.0, 0), (100.5, 0), (100.9, 0), (101.0, 2), (101.5, 2), (102.1, 4)):
            clock.now = now
            writer.append(rows([0]))
            save_position(topic.directory, "r", topic.end)
            assert topic.first == first


def test_damage_that_retention_meets_is_told_before_anything_is_appended(topic: Topic) -> None:
    with TopicWriter(topic, "w") as writer:
        (topic.directory / "readers" / "r.json").write_text("?")
        with pytest.raises(DamagedError):
            writer.append(rows([0]))
    assert topic.refresh() == 0


def test_leftovers_of_a_killed_writer_are_removed_when_the_next_one_opens(topic: Topic) -> None:
    left = topic.directory / "segments" / segment(topic, 0).file
    with TopicWriter(topic, "w", Clock(left.stat().st_mtime + 59)):
        assert left.exists()
    with TopicWriter(topic, "w", Clock(left.stat().st_mtime + 61)):
        assert not left.exists()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
@pytest.mark.parametrize("nth", range(4))
def test_a_disk_that_is_full_at_any_moment_loses_and_doubles_nothing(
    topic: Topic, monkeypatch: pytest.MonkeyPatch, nth: int, code: int
) -> None:
    """The n-th sync of an append fails: of the segment, its folder, the commit, its folder."""
    with TopicWriter(topic, "w") as writer:
        writer.append(rows([0, 1]))
        left = [nth]

        def fails_once(descriptor: int) -> None:
            left[0] -= 1
            if left[0] == -1:
                raise OSError(code, os.strerror(code))

        monkeypatch.setattr(os, "fsync", fails_once)
        with pytest.raises(FullError, match=r"topic images: .*nothing committed is lost"):
            writer.append(rows([2, 3]))
        # only the last sync comes when others have seen the commit: it stays then
        seen = [2, 3] if nth == 3 else []
        assert ids(topic) == [0, 1, *seen] and check(topic) == []
        assert len(files(topic.directory)) == 1 + bool(seen)
        writer.append(rows([4]))
    assert ids(topic) == [0, 1, *seen, 4] and check(topic) == []
    assert not list((topic.directory / "commits").glob(".*"))


def test_other_errors_of_the_system_are_not_called_a_full_disk(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(path: Path, target: Path) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with TopicWriter(topic, "w") as writer:
        monkeypatch.setattr(Path, "hardlink_to", broken)
        with pytest.raises(OSError, match="Input/output") as raised:
            writer.append(rows([0]))
    assert raised.value.errno == errno.EIO and files(topic.directory) == []


class Attempt(FileTransaction):
    """A transaction of Kafka whose commit succeeds although its answer is lost."""

    notes: ClassVar[list[bytes]] = []

    def __init__(self) -> None:
        self.note = Attempt.notes.pop() if Attempt.notes else None

    def commit(self, note: bytes) -> None:
        Attempt.notes.append(note)
        raise OutageError("images", "no answer")


def test_a_commit_whose_answer_is_lost(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rows are published when the writer looks again, and are not written twice."""
    waits: list[float] = []
    monkeypatch.setattr("penstock.topics.embedded.writer.time.sleep", waits.append)
    with TopicWriter(topic, "w") as writer:
        attempts = iter([Attempt()])
        monkeypatch.setattr(topic, "begin", lambda *_: next(attempts, None) or Attempt())
        abort = FileSegmentWriter.abort
        monkeypatch.setattr(FileSegmentWriter, "abort", lambda _: None)  # Kafka has the rows
        assert writer.append(rows([0, 1])) == 2
        assert ids(topic) == [0, 1] and waits == [1]
        monkeypatch.setattr(FileSegmentWriter, "abort", abort)


def test_rows_that_a_killed_writer_has_committed(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    Attempt.notes.append(json.dumps(segment(topic, 7, 8).to_json()).encode())
    monkeypatch.setattr(topic, "begin", lambda *_: Attempt())
    with TopicWriter(topic, "w"):
        assert ids(topic) == [7, 8]


def test_an_outage_that_lasts(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> FileTransaction:
        raise OutageError("images", "no answer")

    monkeypatch.setattr("penstock.topics.embedded.writer.time.sleep", lambda _: None)
    monkeypatch.setattr("penstock.topics.embedded.writer.OUTAGE_S", 0.0)
    with TopicWriter(topic, "w") as writer:
        monkeypatch.setattr(topic, "begin", refuse)
        with pytest.raises(OutageError, match="no answer from Kafka in 0 s"):
            writer.append(rows([0]))
