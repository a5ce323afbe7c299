"""What a topic promises to who reads it and who publishes to it."""

import json
import pickle
import shutil
from pathlib import Path

import pyarrow as pa
import pytest
from tests.topics.factories import SCHEMA, fill, ids, rows, segment

from penstock.errors import DamagedError, InputError, TopicError, TruncatedError
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.retention import Retention
from penstock.topics.embedded.segment import read_rows
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import parse_schema

RECORDED = Path(__file__).parents[2] / "recorded" / "topic-v1"


def test_an_empty_topic(topic: Topic) -> None:
    assert (topic.name, topic.first, topic.end, topic.newest) == ("images", 0, 0, None)
    assert topic.schema.names == ["id", "text", "_event"]
    assert list(topic.read(0, 0)) == [] and topic.refresh() == 0


def test_rows_come_back_in_order_whatever_is_asked_for(topic: Topic) -> None:
    fill(topic, 3, 1, 4)
    for start in range(9):
        for end in range(start, 9):
            assert ids(topic, start, end) == list(range(start, end))


def test_only_some_columns(topic: Topic) -> None:
    (batch,) = fill(topic, 2).read(0, 2, columns=["text"])
    assert batch.to_pydict() == {"text": ["row 0", "row 1"]}


def test_pieces_can_be_read_by_another_process(topic: Topic) -> None:
    fill(topic, 3, 3, at=12.5)
    pieces = pickle.loads(pickle.dumps(topic.pieces(1, 5)))
    assert [(p.from_row, p.to_row, p.rows, p.at) for p in pieces] == [
        (1, 3, 2, 12.5),
        (0, 2, 2, 12.5),
    ]
    found = [b for p in pieces for b in read_rows(p.path, p.segment, p.from_row, p.to_row)]
    assert pa.Table.from_batches(found).column("id").to_pylist() == [1, 2, 3, 4]


def test_a_commit_of_several_segments_is_one_commit(topic: Topic) -> None:
    assert topic.publish("w", 0, [segment(topic, 0, 1), segment(topic, 2)], at=3.0)
    (commit,) = topic.commits(1, 3)
    assert (commit.first, commit.end, commit.at, len(commit.segments)) == (0, 3, 3.0, 2)
    assert ids(topic) == [0, 1, 2]


def test_others_see_a_commit_when_they_look(topic: Topic) -> None:
    other = Topic.open(topic.directory)
    fill(topic, 2, 2)
    assert other.end == 0 and other.refresh() == 4 and ids(other) == [0, 1, 2, 3]
    fill(topic, 1)
    assert ids(other, 0, 5) == [0, 1, 2, 3, 4]  # asking for more than is known looks, too


def test_a_batch_is_published_once(topic: Topic) -> None:
    written = segment(topic, 0, 1)
    assert topic.publish("w", 5, [written], at=1.0)
    other = Topic.open(topic.directory)
    assert not other.publish("w", 5, [written], at=2.0)
    assert not other.publish("w", 4, [segment(topic, 9)], at=2.0)
    assert other.publish("v", 5, [segment(topic, 2)], at=2.0)
    assert ids(topic, 0, 3) == [0, 1, 2]
    assert (topic.last_batch("w"), topic.last_batch("v"), topic.last_batch("u")) == (5, 5, None)


def test_a_commit_without_rows_writes_nothing(topic: Topic) -> None:
    assert topic.publish("w", 0, [], at=1.0)
    assert topic.end == 0 and list((topic.directory / "commits").iterdir()) == []


def test_a_writer_that_comes_second_goes_on_behind_the_first(topic: Topic) -> None:
    other = Topic.open(topic.directory)
    fill(topic, 3)
    assert other.publish("v", 0, [segment(other, 3, 4)], at=0.0)
    assert other.end == 5 and ids(topic, 0, 5) == [0, 1, 2, 3, 4]


def test_the_last_batch_is_known_although_its_commit_was_removed(topic: Topic) -> None:
    fill(topic, 1, writer="once")
    fill(topic, 1, 1, 1)
    assert topic.remove_before(3) == 3
    reopened = Topic.open(topic.directory)
    assert reopened.last_batch("once") == 0
    assert not reopened.publish("once", 0, [segment(topic, 0)], at=0.0)


def test_a_batch_that_was_published_and_removed_is_there_already(topic: Topic) -> None:
    written = segment(topic, 0)
    topic.publish("w", 0, [written], at=0.0)
    fill(topic, 1, 1).remove_before(2)
    assert not topic.publish("w", 0, [written], at=0.0)


def test_rows_that_were_removed_are_a_clear_error(topic: Topic) -> None:
    fill(topic, 2, 2, 2)
    stale = Topic.open(topic.directory)
    topic.remove_before(2)
    for known in (topic, stale):
        with pytest.raises(TruncatedError) as raised:
            ids(known, 1, 6)
        assert (raised.value.topic, raised.value.offset, raised.value.first) == ("images", 1, 2)
        assert ids(known, 2, 6) == [2, 3, 4, 5] and known.first == 2
    assert "row 1 was removed by retention; the first row there is 2" in str(raised.value)


def test_rows_removed_while_they_are_read_are_the_same_error(topic: Topic) -> None:
    fill(topic, 2, 2, 2)
    reading = Topic.open(topic.directory).read(0, 6)
    assert next(reading).num_rows == 2
    topic.remove_before(4)
    with pytest.raises(TruncatedError, match="row 2 was removed"):
        next(reading)


def test_going_through_all_commits_leaves_out_those_that_are_removed_meanwhile(
    topic: Topic,
) -> None:
    fill(topic, 1, 1, 1, 1)
    commits = Topic.open(topic.directory).oldest_first()
    assert next(commits).first == 0
    topic.remove_before(3)
    assert [commit.first for commit in commits] == [3]


def test_one_who_was_away_while_all_it_knew_was_removed_goes_on_at_the_right_place(
    topic: Topic,
) -> None:
    fresh, away = Topic.open(topic.directory), Topic.open(fill(topic, 2).directory)
    fill(topic, 2, 2)
    topic.remove_before(4)
    for known in (fresh, away):
        assert known.refresh() == 6 and known.first == 4
    fresh, away = Topic.open(topic.directory), Topic.open(topic.directory)
    fill(topic, 2, 2)
    topic.remove_before(8)
    assert away.publish("away", 0, [segment(away, 10)], at=0.0)
    assert ids(fresh, 8, 11) == [8, 9, 10]


def test_rows_that_are_not_there_yet_are_a_clear_error(topic: Topic) -> None:
    with pytest.raises(TopicError, match="topic images: ends at 2, but rows up to 3 were asked"):
        ids(fill(topic, 2), 0, 3)
    with pytest.raises(TopicError, match="rows 2 to 1 were asked for"):
        topic.commits(2, 1)


def test_a_missing_commit_is_damage_and_no_gap(topic: Topic) -> None:
    fill(topic, 2, 2, 2)
    stale = Topic.open(topic.directory)
    path = topic.directory / "commits" / f"{2:020}.json"
    path.unlink()
    for known in (stale, Topic.open(topic.directory)):
        with pytest.raises(DamagedError, match=f"{path.name}: missing"):
            ids(known, 0, 6)
        assert ids(known, 4, 6) == [4, 5]


def test_an_altered_commit_is_damage(topic: Topic) -> None:
    fill(topic, 2, 2)
    path = topic.directory / "commits" / f"{0:020}.json"
    path.write_text(path.read_text().replace('"rows":2', '"rows":1', 1))
    with pytest.raises(DamagedError, match=f"{path.name}: was altered"):
        ids(Topic.open(topic.directory), 0, 4)


def test_a_commit_under_a_wrong_name_is_damage(topic: Topic) -> None:
    fill(topic, 2)
    path = topic.directory / "commits" / f"{0:020}.json"
    shutil.copy(path, path.with_name(f"{2:020}.json"))
    with pytest.raises(DamagedError, match="holds the commit of row 0"):
        topic.refresh()


def test_a_segment_that_is_gone_is_not_published(topic: Topic) -> None:
    gone = segment(topic, 1)
    (topic.directory / "segments" / gone.file).unlink()
    with pytest.raises(DamagedError, match="before it was published"):
        topic.publish("w", 0, [gone], at=0.0)
    assert topic.refresh() == 0


def test_a_segment_of_another_schema_is_damage_with_the_first_difference(topic: Topic) -> None:
    other = Topic.create(topic.directory.with_name("other"), parse_schema("id long, text binary"))
    writer = other.segment_writer()
    writer.write(rows([0]).set_column(1, "text", pa.array([b"x"])))
    written = writer.close()
    assert written is not None
    shutil.move(other.directory / "segments" / written.file, topic.directory / "segments")
    topic.publish("w", 0, [written], at=0.0)
    with pytest.raises(DamagedError, match="column 'text': expected string, found binary"):
        ids(topic)


def test_a_topic_is_made_once(topic: Topic) -> None:
    fill(topic, 2)
    assert ids(Topic.create(topic.directory, topic.schema)) == [0, 1]
    with pytest.raises(InputError, match="column 'id': expected int, found long") as raised:
        Topic.create(topic.directory, parse_schema("id int, text string"))
    assert raised.value.where == str(topic.directory)


def test_a_reader_says_what_it_expects(topic: Topic) -> None:
    assert Topic.open(topic.directory, SCHEMA).name == "images"
    with pytest.raises(InputError, match="column 'tag' \\(string\\) is missing"):
        Topic.open(topic.directory, parse_schema("id long, text string, tag string"))


def test_retention_holds_until_another_is_given(topic: Topic) -> None:
    Topic.create(topic.directory, SCHEMA, Retention(seconds=60))
    assert Topic.create(topic.directory, SCHEMA).retention == Retention(seconds=60)
    assert Topic.open(topic.directory).retention == Retention(seconds=60)


def test_what_is_no_topic_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="there is no such directory"):
        Topic.open(tmp_path / "nothing")
    with pytest.raises(InputError, match="is not a topic"):
        Topic.open(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="cannot be a topic"):
        Topic.create(tmp_path / "file" / "topic", SCHEMA)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"version": 1, "schema": "AAAA"}'])
def test_a_broken_description_is_damage(topic: Topic, content: str) -> None:
    (topic.directory / "topic.json").write_text(content)
    with pytest.raises(DamagedError, match=r"topic images: topic\.json: is no description"):
        Topic.open(topic.directory)


def test_a_newer_description_is_refused(topic: Topic) -> None:
    path = topic.directory / "topic.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": 4}))
    with pytest.raises(InputError, match="cannot read version 4, only 3 and older ones"):
        Topic.open(topic.directory)


def test_a_topic_of_version_1_is_read() -> None:
    topic = Topic.open(RECORDED)
    assert topic.schema.equals(pa.schema([*SCHEMA, topic.schema.field("_event")]))
    assert (topic.first, topic.end, topic.last_batch("w")) == (2, 7, 2)
    assert ids(topic) == [2, 3, 4, 5, 6]
    assert topic.retention == Retention(seconds=600, bytes=2_000_000)
    assert positions(topic.directory) == {"resize": 5}


def test_thousands_of_commits_are_opened_without_reading_them(
    topic: Topic, monkeypatch: pytest.MonkeyPatch
) -> None:
    (written,) = fill(topic, 1).commits(0, 1)[0].segments
    for batch in range(1, 1500):
        topic.publish("w", batch, [written], at=0.0)
    reads = []
    read_bytes = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: reads.append(path) or read_bytes(path))
    reopened = Topic.open(topic.directory)
    assert (reopened.first, reopened.end, reopened.last_batch("w")) == (0, 1500, 1499)
    assert len(reads) <= 3  # the description, the newest commit, and the one that is not there
    assert len(reopened.pieces(700, 710)) == 10 and len(reads) <= 13
