"""Columns that a topic gets later: rows from before have null there, however they are read."""

import json
from pathlib import Path

import pyarrow as pa
import pytest
from tests.topics.factories import SCHEMA, fill, rows

from penstock.cli.main import main
from penstock.errors import DamagedError, InputError
from penstock.topics.embedded.check import check
from penstock.topics.embedded.retention import Retention
from penstock.topics.embedded.topic import Topic
from penstock.topics.partition import Partition
from penstock.topics.schema import compare_schemas, parse_schema

WIDER = parse_schema("id long, price double, text string")


def evolved(directory: Path, partition: Partition | None = None) -> Topic:
    """A topic with rows 0 to 4 of two columns and rows 5 to 7 of three."""
    fill(Topic.create(directory, SCHEMA, partition=partition), 2, 3)
    topic = Topic.create(directory, WIDER, partition=partition, may_add=True)
    writer = topic.segment_writer()
    writer.write(rows([5, 6, 7]).add_column(1, "price", pa.array([0.5, 0.6, 0.7])))
    segment = writer.close()
    assert segment is not None
    assert topic.publish("w", 2, [segment], 0.0)
    return topic


def test_rows_from_before_have_null(tmp_path: Path) -> None:
    topic = evolved(tmp_path / "images")
    found = pa.Table.from_batches(topic.read(0, 8))
    assert found.schema.equals(topic.schema)
    assert found["id"].to_pylist() == list(range(8))
    assert found["price"].to_pylist() == [None] * 5 + [0.5, 0.6, 0.7]
    assert found["text"].to_pylist() == [f"row {i}" for i in range(8)]
    prices = [p for batch in topic.read(4, 6, ["price"]) for p in batch["price"].to_pylist()]
    assert prices == [None, 0.5]


def test_pieces_carry_what_readers_in_other_processes_need(tmp_path: Path) -> None:
    topic = Topic.open(evolved(tmp_path / "images").directory)
    batches = [batch for piece in topic.pieces(0, 8) for batch in piece.read()]
    assert pa.Table.from_batches(batches).schema.equals(topic.schema)
    fill(other := Topic.create(tmp_path / "plain", SCHEMA), 1)
    assert other.pieces(0, 1)[0].schema is None  # nothing to fill in, nothing to send along


def test_slices_of_rows_from_before_have_null(tmp_path: Path) -> None:
    topic = evolved(tmp_path / "images", Partition(key=("id",), slices=4))
    found = {}
    for piece in topic.pieces(0, 8):
        for _, batch in piece.read_slices(range(4)):
            assert batch.schema.equals(topic.schema)
            found |= {row["id"]: row["price"] for row in batch.to_pylist()}
    assert found == {**dict.fromkeys(range(5)), 5: 0.5, 6: 0.6, 7: 0.7}


def test_a_second_column_is_added_to_the_first(tmp_path: Path) -> None:
    evolved(tmp_path / "images")
    wider = parse_schema("id long, price double, text string, note string")
    topic = Topic.create(tmp_path / "images", wider, Retention(seconds=60), may_add=True)
    assert topic.added == ("price", "note")
    assert Topic.open(topic.directory).added == ("price", "note")
    last = [row for batch in topic.read(4, 6) for row in batch.to_pylist()]
    assert [(row["price"], row["note"]) for row in last] == [(None, None), (0.5, None)]
    assert check(topic) == []


def test_what_a_new_retention_leaves_alone(tmp_path: Path) -> None:
    partition = Partition(key=("id",), slices=4)
    evolved(tmp_path / "images", partition)
    topic = Topic.create(tmp_path / "images", WIDER, Retention(seconds=60))
    assert (topic.added, topic.partition) == (("price",), partition)


@pytest.mark.parametrize(
    ("new", "problem"),
    [
        ("id long, text string, price double not null", "column 'price' is new"),
        ("id long, price double", "column 'text' (string) is not expected"),
        ("id int, text string, price double", "column 'id': expected int, found long"),
        ("text string, id long", "column 1: expected 'text', found 'id'"),
        ("id long not null, text string", "column 'id': expected long not null, found long"),
    ],
)
def test_other_changes_are_refused(tmp_path: Path, new: str, problem: str) -> None:
    Topic.create(tmp_path / "images", SCHEMA)
    before = (tmp_path / "images" / "topic.json").read_bytes()
    with pytest.raises(InputError) as error:
        Topic.create(tmp_path / "images", parse_schema(new), may_add=True)
    assert problem in str(error.value)
    assert (tmp_path / "images" / "topic.json").read_bytes() == before


def test_nobody_adds_a_column_by_accident(tmp_path: Path) -> None:
    Topic.create(tmp_path / "images", SCHEMA)
    with pytest.raises(InputError, match=r"column 'price' .* is missing"):
        Topic.create(tmp_path / "images", WIDER)


def test_the_order_of_columns_that_stay_counts() -> None:
    old = parse_schema("a long, b long")
    assert compare_schemas(old, parse_schema("c int, a long, d int, b long")) == (("c", "d"), "")
    assert compare_schemas(old, parse_schema("b long, a long"))[1]


def test_check_tells_an_older_segment_from_a_damaged_one(tmp_path: Path) -> None:
    topic = evolved(tmp_path / "images")
    assert check(topic) == []
    path = topic.directory / "topic.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "added": []}))
    assert [damage.problem for damage in check(topic)] == ["column 'price' (double) is missing"] * 2
    with pytest.raises(DamagedError, match=r"column 'price' .* is missing"):
        list(Topic.open(topic.directory).read(0, 1))


def test_a_column_that_must_not_be_null_is_not_filled(tmp_path: Path) -> None:
    topic = evolved(tmp_path / "images")
    strict = pa.schema([pa.field("more", pa.int64(), nullable=False), *topic.schema])
    object.__setattr__(piece := topic.pieces(0, 1)[0], "schema", strict)
    with pytest.raises(DamagedError, match="column 'more' is missing"):
        list(piece.read())


def test_commands_show_the_new_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    topic = evolved(tmp_path / "images")
    assert main(["topics", "tail", str(topic.directory), "-n", "4", "--json"]) == 0
    shown = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["price"] for row in shown] == [None, 0.5, 0.6, 0.7]
    assert main(["topics", "show", str(topic.directory)]) == 0
    assert "price" in capsys.readouterr().out
    assert main(["topics", "check", str(topic.directory)]) == 0
