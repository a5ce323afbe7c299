"""Every damage is named, with the file and the rows; nothing else is."""

import json
from pathlib import Path

import pytest
from tests.topics.embedded.test_segment import DAMAGE
from tests.topics.factories import fill, segment

from penstock.topics.embedded.check import TopicDamage, check, check_directory
from penstock.topics.embedded.topic import Topic


def test_a_whole_topic_has_no_damage(topic: Topic) -> None:
    assert check(topic) == []
    fill(topic, 2, 3)
    segment(topic, 9)  # not published: a leftover, no damage
    topic.remove_before(2)
    assert check(topic) == []


@pytest.mark.parametrize("kind", DAMAGE)
def test_each_damaged_segment_is_named_with_its_rows(topic: Topic, kind: str) -> None:
    damage, _ = DAMAGE[kind]
    topic.publish("w", 0, [segment(topic, 0, 1), segment(topic, 2)], at=0.0)
    fill(topic, 2, 2)
    second, last = topic.commits(0, 3)[0].segments[1], topic.commits(5, 7)[0].segments[0]
    for damaged in (second, last):
        damage(topic.directory / "segments" / damaged.file)
    found = check(topic)
    assert [(d.file, d.rows) for d in found] == [
        (f"segments/{second.file}", range(2, 3)),
        (f"segments/{last.file}", range(5, 7)),
    ]


def test_damaged_commits_are_named_also_if_the_topic_cannot_be_opened(topic: Topic) -> None:
    fill(topic, 2, 2, 2, 2)
    commits = [topic.directory / "commits" / f"{first:020}.json" for first in (0, 2, 4, 6)]
    commits[0].write_bytes(commits[0].read_bytes()[:50])
    commits[1].unlink()
    commits[3].write_text(commits[3].read_text().replace('"writer":"w"', '"writer":"v"'))
    assert check_directory(topic.directory) == [
        TopicDamage(
            file=f"commits/{0:020}.json",
            problem="is cut short, or no commit at all",
            rows=range(0, 4),
        ),
        TopicDamage(
            file=f"commits/{6:020}.json",
            problem="was altered: its checksum differs",
            rows=range(6, 6),
        ),
    ]
    commits[0].unlink()


def test_a_missing_commit_is_named_with_its_rows(topic: Topic) -> None:
    fill(topic, 2, 2, 2)
    (topic.directory / "commits" / f"{2:020}.json").unlink()
    missing = TopicDamage(file=f"commits/{2:020}.json", problem="missing", rows=range(2, 4))
    assert check(topic) == [missing]


def test_a_commit_under_a_wrong_name_is_named(topic: Topic) -> None:
    fill(topic, 2)
    path = topic.directory / "commits" / f"{0:020}.json"
    path.rename(path.with_name(f"{5:020}.json"))
    (found,) = check_directory(topic.directory)
    assert found.problem == "holds the commit of row 0"


def test_the_other_files_are_checked_too(topic: Topic) -> None:
    (topic.directory / "readers" / "r.json").write_text(json.dumps({"offset": "far"}))
    assert [d.file for d in check(topic)] == ["readers/r.json"]
    Path(topic.directory / "topic.json").write_text("{")
    assert [d.file for d in check_directory(topic.directory)] == ["topic.json"]
