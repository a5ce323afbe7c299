"""What there is to see of a topic: figures, columns, readers, writers, damage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.numbers import pretty
from penstock.reports.tables import Table, as_text
from penstock.topics.ddl import kind_text
from penstock.topics.embedded.check import TopicDamage
from penstock.topics.embedded.commit import Commit
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.retention import Retention
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import schema_text, without_event


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """A topic at one moment."""

    name: str
    directory: Path
    schema: pa.Schema
    retention: Retention
    first: int
    end: int
    #: On disk, in segments.
    bytes: int
    commits: int
    newest: Commit | None
    #: The next row that each reader wants.
    readers: Mapping[str, int]

    @property
    def rows(self) -> int:
        """The number of rows that are there."""
        return self.end - self.first


def figures(directory: Path) -> Figures:
    """Open a topic and take its figures."""
    topic = Topic.open(directory)
    oldest = next(topic.oldest_first(), None)
    return Figures(
        name=topic.name,
        directory=directory,
        schema=topic.schema,
        retention=topic.retention,
        first=topic.first,
        end=topic.end,
        bytes=topic.end_bytes - (oldest.bytes_before if oldest else 0),
        commits=topic.commit_count,
        newest=topic.newest,
        readers=positions(topic.directory),
    )


def list_text(found: Sequence[Figures], now: float) -> str:
    """One line for each topic."""
    columns = ("topic", "rows", "first", "end", "size", "commits", "newest", "slowest reader")
    return as_text(Table(columns=columns, rows=tuple(_line(each, now) for each in found)))


def show_text(seen: Figures, now: float) -> str:
    """All about one topic."""
    newest = "none yet"
    if seen.newest:
        newest = f"{_ago(seen, now)}, batch {seen.newest.batch} of {seen.newest.writer}"
    head = [
        f"{seen.name}, in {seen.directory}",
        "",
        f"rows     {pretty(seen.rows)}, from {pretty(seen.first)} to {pretty(seen.end)}",
        f"size     {size_text(seen.bytes)} in {pretty(seen.commits)} commits",
        f"newest   {newest}",
        f"keep     {seen.retention}",
        "",
    ]
    kinds = tuple((field.name, kind_text(field)) for field in seen.schema)
    tables = [as_text(Table(columns=("column", "type"), rows=kinds, words=2))]
    if seen.readers:
        lines = tuple((name, pretty(at), pretty(seen.end - at)) for name, at in _slowest(seen))
        tables.append(as_text(Table(columns=("reader", "wants row", "behind"), rows=lines)))
    if seen.newest:
        batches = tuple((name, pretty(last)) for name, last in seen.newest.batches.items())
        tables.append(as_text(Table(columns=("writer", "last batch"), rows=batches)))
    return "\n".join(head) + "\n" + "\n\n".join(tables)


def to_json(seen: Figures) -> dict[str, Any]:
    """The same for machines."""
    return {
        "name": seen.name,
        "directory": str(seen.directory),
        "schema": schema_text(without_event(seen.schema)),
        "keep": str(seen.retention),
        "rows": seen.rows,
        "first": seen.first,
        "end": seen.end,
        "bytes": seen.bytes,
        "commits": seen.commits,
        "newest_at": seen.newest.at if seen.newest else None,
        "readers": {
            name: {"offset": at, "behind": seen.end - at} for name, at in seen.readers.items()
        },
        "writers": dict(seen.newest.batches) if seen.newest else {},
    }


def damage_text(found: Mapping[str, Sequence[TopicDamage]]) -> str:
    """Everything that is damaged, or that nothing is."""
    lines = [(name, each.file, _rows(each), each.problem) for name in found for each in found[name]]
    if lines:
        columns = ("topic", "file", "rows", "problem")
        return as_text(Table(columns=columns, rows=tuple(lines), words=4))
    return "\n".join(f"{name}: whole" for name in found)


def damage_json(found: Mapping[str, Sequence[TopicDamage]]) -> list[dict[str, Any]]:
    """The same for machines."""
    return [
        {
            "topic": name,
            "damage": [
                {"file": d.file, "problem": d.problem, "first": d.rows.start, "end": d.rows.stop}
                for d in damage
            ],
        }
        for name, damage in found.items()
    ]


def size_text(size: int) -> str:
    """Write a number of bytes.

    >>> [size_text(n) for n in (0, 999, 1500, 23_400_000, 2 * 10**12)]
    ['0 B', '999 B', '1.5 kB', '23.4 MB', '2 TB']
    """
    for factor, unit in ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB")):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} B"


def _line(seen: Figures, now: float) -> tuple[str, ...]:
    slowest = "-"
    for name, at in _slowest(seen)[:1]:
        slowest = f"{name}, {pretty(seen.end - at)} behind"
    numbers = (pretty(number) for number in (seen.rows, seen.first, seen.end))
    size, commits = size_text(seen.bytes), pretty(seen.commits)
    return (seen.name, *numbers, size, commits, _ago(seen, now), slowest)


def _slowest(seen: Figures) -> list[tuple[str, int]]:
    return sorted(seen.readers.items(), key=lambda reader: reader[1])


def _ago(seen: Figures, now: float) -> str:
    if seen.newest is None:
        return "-"
    seconds = max(0.0, now - seen.newest.at)
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def _rows(damage: TopicDamage) -> str:
    if not damage.rows:
        return "unknown"
    return f"{pretty(damage.rows.start)} to {pretty(damage.rows.stop)}"
