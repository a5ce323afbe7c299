"""The oracles of ready pipelines, without Spark: no row that is lost or doubled escapes them."""

from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from tests.demos.in_memory import run
from tests.tools.audit import Auditor
from tests.tools.ready_oracles import ORACLES, Batches, problems

from penstock.demos import clicks, tweets_authors, words
from penstock.topics.embedded.segment import read_slices
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.partition import Partition
from penstock.topics.schema import parse_schema

BUILD = {"words": words.build, "clicks": clicks.build, "tweets-authors": tweets_authors.build}
RECORDS = 400
CUTS = (40, 133)
Topics = dict[str, pa.Table]


@cache
def made(name: str, cut: int) -> tuple[Topics, Batches]:
    """All topics of a pipeline whose operator with state has so many rows in each batch."""
    pipeline = BUILD[name](service_s=0)
    topics = run(pipeline, RECORDS, every_us=100_000, rows_with_state=cut)
    operator = pipeline.operators[ORACLES[name].operator]
    rows = len(topics[operator.reads[0]])
    bounds = [(first, min(first + cut, rows)) for first in range(0, rows, cut)]
    return topics, {operator.name: bounds}


NAMES, EACH_CUT = (
    pytest.mark.parametrize("name", ORACLES),
    pytest.mark.parametrize("cut", CUTS),
)


@NAMES
@EACH_CUT
def test_what_is_right_is_right(name: str, cut: int) -> None:
    topics, batches = made(name, cut)
    assert all(len(rows) > 2 for rows in topics.values())
    assert problems(name, topics, batches) == []


@NAMES
@EACH_CUT
def test_a_lost_row_is_noticed_in_every_topic(name: str, cut: int) -> None:
    topics, batches = made(name, cut)
    for topic, rows in topics.items():
        place = len(rows) // 2
        less = pa.concat_tables([rows.slice(0, place), rows.slice(place + 1)])
        assert problems(name, {**topics, topic: less}, batches), topic


@NAMES
@EACH_CUT
def test_a_doubled_row_is_noticed_in_every_topic(name: str, cut: int) -> None:
    topics, batches = made(name, cut)
    for topic, rows in topics.items():
        more = pa.concat_tables([rows, rows.slice(len(rows) // 2, 1)])
        assert problems(name, {**topics, topic: more}, batches), topic


@NAMES
def test_another_cut_is_not_taken_for_right(name: str) -> None:
    topics, _ = made(name, CUTS[0])
    _, batches = made(name, CUTS[1])
    assert problems(name, topics, batches)


def test_without_the_cut_totals_must_still_grow() -> None:
    topics, batches = made("words", CUTS[0])
    counts = topics["counts"]
    backwards = counts.take(pa.array(range(len(counts))[::-1]))
    found = problems("words", {**topics, "counts": backwards}, batches)
    assert [problem.split(":")[0] for problem in found] == ["totals in counts that do not grow"]


def test_the_auditor_knows_which_rows_a_batch_takes(tmp_path: Path) -> None:
    """Against what a task reads, wherever a topic in the order of slices is cut."""
    by_word = Partition(key=("word",), slices=5)
    topic = Topic.create(tmp_path / "words", parse_schema("word string"), partition=by_word)
    with TopicWriter(topic, "test") as writer:
        for size in (7, 1, 12):
            writer.append(pa.table({"word": [f"w{n % 9}" for n in range(size)]}))
    auditor = Auditor({"words": topic.directory})
    words = auditor.finish()["words"]["word"].to_pylist()
    for end in range(1, topic.refresh() + 1):
        read = [
            word
            for piece in topic.pieces(0, end)
            for _, rows in read_slices(
                piece.path, piece.segment, piece.from_row, piece.to_row, range(5)
            )
            for word in rows["word"].to_pylist()
        ]
        taken = [w for w, at in zip(words, auditor.reached["words"], strict=True) if at <= end]
        assert taken == read
