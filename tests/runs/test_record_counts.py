"""What became of records, counted in topics that were made by hand."""

from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pytest

from penstock.pipelines.pipeline import Pipeline
from penstock.runs.record_counts import count_records, first_topics, last_topics
from penstock.topics.embedded.readers import save_position
from penstock.topics.embedded.retention import trim
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.schema import parse_schema

IDS = "id long, value double"


def made(*operators: tuple[str | list[str], str], source: str = IDS, last: str = IDS) -> Pipeline:
    """A pipeline of operators that do nothing: reads -> writes."""
    pipeline = Pipeline("made")
    read = {name for reads, _ in operators for name in ([reads] if type(reads) is str else reads)}
    for name in read | {writes for _, writes in operators}:
        pipeline.topic(name, source if name == "a" else last)
    for number, (reads, writes) in enumerate(operators):

        def same(batch: pa.RecordBatch) -> pa.RecordBatch:
            return batch

        same.__name__ = f"op{number}"
        pipeline.batches(reads=reads, writes=writes)(same)
    return pipeline


def put(topics: Path, name: str, ids: Iterable[int], schema: str = IDS, parts: int = 3) -> Topic:
    """Write rows with these numbers, in several commits."""
    numbers = list(ids)
    topic = Topic.create(topics / name, parse_schema(schema))
    size = max(1, -(-len(numbers) // parts))
    with TopicWriter(topic, "test") as writer:
        for begin in range(0, len(numbers), size):
            some = numbers[begin : begin + size]
            columns = {"id": some, "value": [0.5] * len(some)}
            names = [field.partition(" ")[0] for field in schema.split(", ")]
            writer.append(pa.table({key: columns[key] for key in names}))
    return topic


def test_every_number_once(tmp_path: Path) -> None:
    put(tmp_path, "a", range(100))
    put(tmp_path, "b", reversed(range(100)))
    counts = count_records(made(("a", "b")), tmp_path)
    assert (counts.offered, counts.complete, counts.missing, counts.doubled) == (100, 100, 0, 0)
    assert counts.topics[0].rows == 100


def test_missing_doubled_and_strange_are_told_apart(tmp_path: Path) -> None:
    put(tmp_path, "a", range(10))
    put(tmp_path, "b", [0, 1, 1, 1, 3, 4, 5, 6, 99, -1])
    counts = count_records(made(("a", "b")), tmp_path)
    assert (counts.complete, counts.missing) == (6, 4)  # 2, 7, 8 and 9 are not there
    assert counts.doubled == 2
    assert counts.strange == 2


def test_a_record_must_be_in_every_last_topic(tmp_path: Path) -> None:
    put(tmp_path, "a", range(10))
    put(tmp_path, "b", [n for n in range(10) if n != 3])
    put(tmp_path, "c", [n for n in range(10) if n != 7])
    counts = count_records(made(("a", "b"), ("a", "c")), tmp_path)
    assert (counts.complete, counts.missing, counts.doubled) == (8, 2, 0)
    assert [found.missing for found in counts.topics] == [1, 1]


def test_what_retention_removed_from_the_source_was_offered_all_the_same(tmp_path: Path) -> None:
    source = put(tmp_path, "a", range(90))
    save_position(source.directory, "op0", 60)
    assert trim(source, now=0.0) == 60
    put(tmp_path, "b", range(60))
    counts = count_records(made(("a", "b")), tmp_path)
    assert (counts.offered, counts.complete, counts.missing) == (90, 60, 30)


@pytest.mark.parametrize(
    ("pipeline", "files"),
    [
        pytest.param(
            made(("a", "b"), source="value double", last="value double"),
            {"a": "value double", "b": "value double"},
            id="no numbers at all",
        ),
        pytest.param(
            made(("a", "b"), last="value double"),
            {"a": IDS, "b": "value double"},
            id="no numbers at the end",
        ),
        pytest.param(
            made(("a", "b"), ("a", "c"), (["b", "c"], "d")),
            {"a": IDS, "b": IDS, "c": IDS, "d": IDS},
            id="two ways to the end, so a number may rightly come twice",
        ),
    ],
)
def test_where_numbers_cannot_be_followed_rows_are_counted(
    pipeline: Pipeline, files: dict[str, str], tmp_path: Path
) -> None:
    for name, schema in files.items():
        put(tmp_path, name, range(5), schema)
    counts = count_records(pipeline, tmp_path)
    assert (counts.offered, counts.complete, counts.missing, counts.doubled) == (
        5,
        None,
        None,
        None,
    )
    assert [found.rows for found in counts.topics] == [5]


def test_ids_that_are_not_the_numbers_of_their_rows_are_not_trusted(tmp_path: Path) -> None:
    put(tmp_path, "a", [7, 7, 8])
    put(tmp_path, "b", [7, 7, 8])
    assert count_records(made(("a", "b")), tmp_path).complete is None


def test_topics_that_are_not_there_are_empty(tmp_path: Path) -> None:
    counts = count_records(made(("a", "b")), tmp_path)
    assert (counts.offered, counts.complete) == (0, None)
    assert [found.rows for found in counts.topics] == [0]


def test_the_ends_of_a_pipeline() -> None:
    pipeline = made(("a", "b"), ("b", "c"), ("b", "d"))
    assert first_topics(pipeline) == ("a",)
    assert set(last_topics(pipeline)) == {"c", "d"}
