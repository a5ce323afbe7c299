"""Rows of the topics of a run, as a table."""

from pathlib import Path

import pytest
from tests.topics.factories import SCHEMA, fill

from penstock.errors import InputError
from penstock.runs.topic_inspection import read_rows
from penstock.topics.embedded.topic import Topic


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run with a topic whose first three of twelve rows retention has removed."""
    images = Topic.create(tmp_path / "topics" / "images", SCHEMA)
    fill(images, 3, 4, 5)
    images.remove_before(3)
    Topic.create(tmp_path / "topics" / "tags", SCHEMA)
    return tmp_path


def test_rows_are_a_table(run: Path) -> None:
    table = read_rows(run, "images")
    assert (
        table.num_rows == 9 and table.schema.names == Topic.open(run / "topics/images").schema.names
    )
    assert read_rows(run, "tags").num_rows == 0


@pytest.mark.parametrize(("last", "rows"), [(0, 0), (2, 2), (9, 9), (100, 9)])
def test_the_last_rows(run: Path, last: int, rows: int) -> None:
    table = read_rows(run, "images")
    assert read_rows(run, "images", last).equals(table.slice(table.num_rows - rows))


def test_mistakes_are_clear(run: Path) -> None:
    with pytest.raises(InputError, match=r"there is no topic 'image'.*\n.*'images'"):
        read_rows(run, "image")
    with pytest.raises(InputError, match="must be at least 0, got -1"):
        read_rows(run, "images", -1)
