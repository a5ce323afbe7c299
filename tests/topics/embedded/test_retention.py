"""What stays and what goes."""

import os
import random
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.topics.factories import SCHEMA, files, fill, ids, segment

from penstock.errors import DamagedError, InputError
from penstock.topics.embedded.check import check
from penstock.topics.embedded.readers import forget, positions, save_position
from penstock.topics.embedded.retention import Retention, parse_retention, remove_leftovers, trim
from penstock.topics.embedded.topic import Topic


def keeping(topic: Topic, retention: Retention) -> Topic:
    return Topic.create(topic.directory, SCHEMA, retention)


def test_without_readers_and_limits_everything_stays(topic: Topic) -> None:
    assert trim(fill(topic, 2, 2, 2), now=1e9) == 0 and topic.first == 0


def test_what_all_readers_have_read_goes_in_whole_commits(topic: Topic) -> None:
    fill(topic, 2, 2, 2)
    save_position(topic.directory, "slow", 3)
    save_position(topic.directory, "fast", 6)
    assert trim(topic, now=0.0) == 2 and topic.first == 2
    assert ids(topic) == [2, 3, 4, 5] and len(files(topic.directory)) == 2
    save_position(topic.directory, "slow", 6)
    assert trim(topic, now=0.0) == 2
    assert ids(topic) == [4, 5]  # the last commit always stays
    assert check(topic) == []


def test_a_reader_that_is_forgotten_holds_nothing(topic: Topic) -> None:
    fill(topic, 2, 2)
    save_position(topic.directory, "gone", 0)
    save_position(topic.directory, "there", 4)
    assert trim(topic, now=0.0) == 0
    forget(topic.directory, "gone")
    forget(topic.directory, "gone")
    assert positions(topic.directory) == {"there": 4} and trim(topic, now=0.0) == 2


def test_by_time(topic: Topic) -> None:
    topic = keeping(topic, Retention(seconds=10))
    for at in (0.0, 5.0, 20.0, 21.0):
        fill(topic, 1, at=at)
    assert trim(topic, now=10.0) == 0
    assert trim(topic, now=15.5) == 2 and topic.first == 2
    assert trim(topic, now=1000.0) == 1 and ids(topic) == [3]


def test_by_size(topic: Topic) -> None:
    one = fill(topic, 1).end_bytes
    topic = keeping(topic, Retention(bytes=3 * one))
    for _ in range(20):
        fill(topic, 1)
        trim(topic, now=0.0)
        on_disk = sum(path.stat().st_size for path in (topic.directory / "segments").iterdir())
        assert on_disk <= 3.5 * one  # segments of the same rows differ by a few bytes
    assert topic.end == 21 and topic.first >= 17


def test_limits_keep_what_a_reader_has_not_read_unless_told_otherwise(topic: Topic) -> None:
    save_position(topic.directory, "slow", 1)
    topic = fill(keeping(topic, Retention(seconds=10)), 1, 1, 1)
    assert trim(topic, now=100.0) == 1 and topic.first == 1
    topic = keeping(topic, Retention(seconds=10, unread=False))
    assert trim(topic, now=100.0) == 1 and ids(topic) == [2]


def test_limits_keep_what_is_within_them_although_it_was_read(topic: Topic) -> None:
    topic = fill(keeping(topic, Retention(seconds=10)), 1, 1, at=95.0)
    save_position(topic.directory, "fast", 2)
    assert trim(topic, now=100.0) == 0


def test_everything_is_kept_if_that_was_asked_for(topic: Topic) -> None:
    topic = fill(keeping(topic, parse_retention("everything")), 1, 1)
    save_position(topic.directory, "fast", 2)
    assert trim(topic, now=1e9) == 0


def test_disk_use_is_bounded_over_a_long_run(topic: Topic) -> None:
    draw = random.Random(3)
    position, most = 0, 0
    for _ in range(300):
        fill(topic, draw.randint(1, 5))
        position = draw.randint(max(position, topic.end - 10), topic.end)
        save_position(topic.directory, "reader", position)
        trim(topic, now=0.0)
        most = max(most, len(files(topic.directory)))
    assert most <= 11 and len(list((topic.directory / "commits").iterdir())) <= 11


def test_what_was_never_published_is_removed_once_it_is_old(topic: Topic) -> None:
    fill(topic, 2)
    old, fresh = segment(topic, 7), segment(topic, 8)
    temporary = topic.directory / "commits" / ".0123.tmp"
    temporary.touch()
    now = time.time()
    for path in ((topic.directory / "segments").iterdir(), [temporary]):
        for file in path:
            os.utime(file, (now - 61, now - 61))
    os.utime(topic.directory / "segments" / fresh.file, (now, now))
    assert remove_leftovers(topic, now) == 2
    assert old.file not in files(topic.directory) and fresh.file in files(topic.directory)
    assert not temporary.exists() and check(topic) == [] and ids(topic) == [0, 1]


def test_nothing_is_removed_if_a_commit_cannot_say_what_it_names(topic: Topic) -> None:
    fill(topic, 2, 2)
    (topic.directory / "commits" / f"{0:020}.json").write_text("{")
    assert remove_leftovers(Topic.open(topic.directory), time.time() + 3600) == 0
    assert len(files(topic.directory)) == 2


def test_a_broken_position_is_damage(topic: Topic) -> None:
    (topic.directory / "readers" / "r.json").write_text("{}")
    with pytest.raises(DamagedError, match=r"readers/r\.json: is no position"):
        trim(fill(topic, 1), now=0.0)


@pytest.mark.parametrize("name", ["", "a/b", "../a", ".hidden", "a b"])
def test_a_reader_needs_a_plain_name(topic: Topic, name: str) -> None:
    with pytest.raises(InputError, match="reader"):
        save_position(topic.directory, name, 0)


@pytest.mark.parametrize(
    ("text", "retention"),
    [
        ("read", Retention()),
        ("everything", Retention(unread=False)),
        ("10 minutes", Retention(seconds=600)),
        ("1 hour", Retention(seconds=3600)),
        ("90s", Retention(seconds=90)),
        ("2 GB", Retention(bytes=2 * 10**9)),
        ("1.5 kb", Retention(bytes=1500)),
        ("2 days, 500 MB, even unread", Retention(seconds=172800, bytes=5 * 10**8, unread=False)),
    ],
)
def test_retention_as_people_write_it(text: str, retention: Retention) -> None:
    assert parse_retention(text) == retention


@pytest.mark.parametrize(
    "text", ["", "10", "minutes", "10 lightyears", "1 GB, 2 GB", "even unread", "-1 s", "read, 1 s"]
)
def test_what_is_no_retention_is_refused_with_examples(text: str) -> None:
    with pytest.raises(InputError, match="keep"):
        parse_retention(text)


@given(
    seconds=st.none() | st.integers(1, 10**7),
    size=st.none() | st.integers(1, 10**9).map(lambda kb: kb * 1000),
    unread=st.booleans(),
)
def test_retention_as_text_and_back(seconds: int | None, size: int | None, unread: bool) -> None:
    kept = Retention(seconds=seconds, bytes=size, unread=unread)
    assert parse_retention(str(kept)) == kept
    assert Retention.from_json(kept.to_json()) == kept


def test_positions_of_a_topic_nobody_reads(tmp_path: Path) -> None:
    assert positions(tmp_path) == {}
