"""Topics in the order of slices: every slice gets its rows, all of them, once and in order."""

from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.topics.factories import segment

from penstock.errors import DamagedError, InputError
from penstock.topics.embedded.segment import SEGMENTS, read_rows, read_slices
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.hashing import hash_keys, slice_of
from penstock.topics.partition import Partition
from penstock.topics.schema import parse_schema

SCHEMA = parse_schema("n long, word string")
BY_WORD = Partition(key=("word",), slices=7)


def made(directory: Path, words: list[list[str | None]]) -> Topic:
    """A topic with one commit for each list; `n` counts the rows."""
    topic = Topic.create(directory / "words", SCHEMA, partition=BY_WORD)
    number = 0
    with TopicWriter(topic, "test") as writer:
        for each in words:
            numbers = range(number, number + len(each))
            writer.append(pa.table({"n": numbers, "word": each}, schema=SCHEMA))
            number += len(each)
    return topic


def slices_of(words: list[str | None]) -> list[int]:
    return slice_of(hash_keys([pa.array(words, pa.string())]), 7).tolist()


WORDS = st.lists(st.one_of(st.none(), st.sampled_from("abcdefgh"), st.text(max_size=3)), max_size=9)


@given(st.lists(WORDS, min_size=1, max_size=4), st.lists(st.integers(0, 40), max_size=4))
def test_wherever_it_is_cut_each_slice_gets_its_rows_in_order(
    tmp_path_factory: pytest.TempPathFactory, commits: list[list[str | None]], cuts: list[int]
) -> None:
    topic = made(tmp_path_factory.mktemp("topic"), commits)
    flat = [word for each in commits for word in each]
    found: dict[int, list[int]] = {}
    bounds = sorted({0, topic.end, *(min(cut, topic.end) for cut in cuts)})
    for start, end in pairwise(bounds):
        for piece in topic.pieces(start, end):
            read = read_slices(piece.path, piece.segment, piece.from_row, piece.to_row, range(7))
            for number, batch in read:
                found.setdefault(number, []).extend(batch["n"].to_pylist())
    expected: dict[int, list[int]] = {}
    for n, number in enumerate(slices_of(flat) if flat else []):
        expected.setdefault(number, []).append(n)
    assert found == expected


def test_other_readers_see_all_rows(tmp_path: Path) -> None:
    topic = made(tmp_path, [["a", "b", "c", "a"]])
    found = [n for batch in topic.read(0, 4) for n in batch["n"].to_pylist()]
    assert sorted(found) == [0, 1, 2, 3]


def test_rows_of_other_slices_are_not_touched(tmp_path: Path) -> None:
    words = ["a", "b", "c", "d"]
    topic = made(tmp_path, [list(words)])
    (piece,) = topic.pieces(0, 4)
    mine = slices_of(["a"])
    (found,) = {n for n, _ in read_slices(piece.path, piece.segment, 0, 4, mine)}
    assert [found] == mine


def test_a_cut_goes_through_every_slice_at_the_same_place(tmp_path: Path) -> None:
    topic = made(tmp_path, [["a"] * 10 + ["b"] * 10])
    assert slices_of(["a"]) != slices_of(["b"])
    (piece,) = topic.pieces(0, 10)
    half = [batch.num_rows for _, batch in read_slices(piece.path, piece.segment, 0, 10, range(7))]
    assert half == [5, 5]


def test_it_stays_with_the_topic(tmp_path: Path) -> None:
    made(tmp_path, [["a"]])
    assert Topic.open(tmp_path / "words").partition == BY_WORD
    assert Topic.create(tmp_path / "words", SCHEMA).partition == BY_WORD
    other = Partition(key=("n",), slices=7)
    with pytest.raises(InputError, match=r"by word into 7 slices, and .* need n into 7 slices"):
        Topic.create(tmp_path / "words", SCHEMA, partition=other)
    with pytest.raises(InputError, match="there is no column 'wort'"):
        Topic.create(tmp_path / "x", SCHEMA, partition=Partition(key=("wort",), slices=7))
    assert not (tmp_path / "x").exists()


def test_a_topic_without_slices_says_so(topic: Topic) -> None:
    written = segment(topic, 1, 2)
    path = topic.directory / SEGMENTS / written.file
    assert len(list(read_rows(path, written, 0, 2))) == 1
    with pytest.raises(DamagedError, match="does not say which rows belong to which slice"):
        list(read_slices(path, written, 0, 2, [0]))
