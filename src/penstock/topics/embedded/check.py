"""Verifies a topic: reads every file completely and reports damage."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from penstock.errors import DamagedError
from penstock.topics.embedded.commit import COMMITS, Commit, commit_name, read_commit
from penstock.topics.embedded.description import Description, read_description
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.segment import SEGMENTS
from penstock.topics.embedded.topic import Topic
from penstock.topics.port import RowStore
from penstock.topics.row_stores import open_rows
from penstock.topics.schema import first_difference


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDamage:
    """Damage in one file of a topic."""

    #: Path relative to the directory of the topic.
    file: str
    problem: str
    #: The affected rows; empty if unknown.
    rows: range


def check(topic: Topic) -> list[TopicDamage]:
    """Return all damage in a topic."""
    return check_directory(topic.directory)


def check_directory(directory: Path) -> list[TopicDamage]:
    """Return all damage, even of a topic that cannot be opened."""
    try:
        description = read_description(directory)
    except DamagedError as error:
        return [TopicDamage(file=error.file, problem=error.what, rows=range(0))]
    return [*_commits(directory, description), *_readers(directory)]


def _commits(directory: Path, description: Description) -> Iterator[TopicDamage]:
    folder, store = directory / COMMITS, open_rows(directory, description)
    firsts = sorted(int(path.stem) for path in folder.glob("[0-9]*.json"))
    end = None
    for first, following in pairwise([*firsts, *firsts[-1:]]):
        file = f"{COMMITS}/{commit_name(first)}"
        if end is not None and end != first:
            missing = f"{COMMITS}/{commit_name(end)}"
            yield TopicDamage(file=missing, problem="missing", rows=range(end, first))
        end = following
        try:
            commit = read_commit((folder / commit_name(first)).read_bytes())
            if commit.first != first:
                raise ValueError(f"holds the commit of row {commit.first}")
        except FileNotFoundError:  # removed by retention meanwhile
            continue
        except ValueError as error:
            yield TopicDamage(file=file, problem=str(error), rows=range(first, following))
        else:
            yield from _segments(directory, description, store, commit)
            end = commit.end


def _segments(
    directory: Path, description: Description, store: RowStore, commit: Commit
) -> Iterator[TopicDamage]:
    first = commit.first
    for segment in commit.segments:
        rows, file = range(first, first + segment.rows), f"{SEGMENTS}/{segment.file}"
        try:
            schema = store.verify(segment)
        except DamagedError as error:
            if (directory / COMMITS / commit_name(commit.first)).exists():
                yield TopicDamage(file=error.file, problem=error.what, rows=rows)
        else:
            if difference := first_difference(_expected(description, schema), schema):
                yield TopicDamage(file=file, problem=difference, rows=rows)
        first = rows.stop


def _expected(description: Description, stored: pa.Schema) -> pa.Schema:
    """Return the expected columns of a segment, which may be older than the schema of the topic."""
    added_later = [name for name in description.added if name not in stored.names]
    return pa.schema([field for field in description.schema if field.name not in added_later])


def _readers(directory: Path) -> Iterator[TopicDamage]:
    try:
        positions(directory)
    except DamagedError as error:
        yield TopicDamage(file=error.file, problem=error.what, rows=range(0))
