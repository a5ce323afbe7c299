"""Topics as text and JSON: figures, columns, readers, writers, damage."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from penstock.core.numbers import pretty, table_number
from penstock.reports.tables import Table, as_text
from penstock.runs.topic_production import ProductionFigures
from penstock.topics.ddl import kind_text
from penstock.topics.embedded.check import TopicDamage
from penstock.topics.embedded.commit import Commit
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.retention import Retention
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import schema_text, without_event


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicFigures:
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
    #: The next row of each reader.
    readers: Mapping[str, int]

    @property
    def rows(self) -> int:
        """The number of stored rows."""
        return self.end - self.first


def read_figures(directory: Path) -> TopicFigures:
    """Read the figures of a topic from its directory."""
    topic = Topic.open(directory)
    oldest = next(topic.oldest_first(), None)
    return TopicFigures(
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


def list_text(topics: Sequence[TopicFigures], now: float) -> str:
    """Return one line per topic."""
    columns = ("topic", "rows", "first", "end", "size", "commits", "newest", "slowest reader")
    return as_text(Table(columns=columns, rows=tuple(_line(topic, now) for topic in topics)))


def show_text(topic: TopicFigures, now: float) -> str:
    """Return the details of one topic."""
    newest = "none yet"
    if topic.newest:
        newest = f"{_ago(topic, now)}, batch {topic.newest.batch} of {topic.newest.writer}"
    head = [
        f"{topic.name}, in {topic.directory}",
        "",
        f"rows     {pretty(topic.rows)}, from {pretty(topic.first)} to {pretty(topic.end)}",
        f"size     {size_text(topic.bytes)} in {pretty(topic.commits)} commits",
        f"newest   {newest}",
        f"keep     {topic.retention}",
        "",
    ]
    kinds = tuple((field.name, kind_text(field)) for field in topic.schema)
    tables = [as_text(Table(columns=("column", "type"), rows=kinds, words=2))]
    if topic.readers:
        lines = tuple((name, pretty(at), pretty(topic.end - at)) for name, at in _slowest(topic))
        tables.append(as_text(Table(columns=("reader", "next row", "lag"), rows=lines)))
    if topic.newest:
        batches = tuple((name, pretty(last)) for name, last in topic.newest.batches.items())
        tables.append(as_text(Table(columns=("writer", "last batch"), rows=batches)))
    return "\n".join(head) + "\n" + "\n\n".join(tables)


def to_json(topic: TopicFigures) -> dict[str, Any]:
    """Return the same as JSON."""
    return {
        "name": topic.name,
        "directory": str(topic.directory),
        "schema": schema_text(without_event(topic.schema)),
        "keep": str(topic.retention),
        "rows": topic.rows,
        "first": topic.first,
        "end": topic.end,
        "bytes": topic.bytes,
        "commits": topic.commits,
        "newest_at": topic.newest.at if topic.newest else None,
        "readers": {
            name: {"offset": at, "behind": topic.end - at} for name, at in topic.readers.items()
        },
        "writers": dict(topic.newest.batches) if topic.newest else {},
    }


def damage_text(damage: Mapping[str, Sequence[TopicDamage]]) -> str:
    """Return all damage, or that there is none."""
    lines = [(name, d.file, _rows(d), d.problem) for name in damage for d in damage[name]]
    if lines:
        columns = ("topic", "file", "rows", "problem")
        return as_text(Table(columns=columns, rows=tuple(lines), words=4))
    return "\n".join(f"{name}: no damage" for name in damage)


def damage_json(damage: Mapping[str, Sequence[TopicDamage]]) -> list[dict[str, Any]]:
    """Return the same as JSON."""
    return [
        {
            "topic": name,
            "damage": [
                {"file": d.file, "problem": d.problem, "first": d.rows.start, "end": d.rows.stop}
                for d in damages
            ],
        }
        for name, damages in damage.items()
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


def _line(topic: TopicFigures, now: float) -> tuple[str, ...]:
    slowest = "-"
    for name, at in _slowest(topic)[:1]:
        slowest = f"{name}, {pretty(topic.end - at)} rows behind"
    numbers = (pretty(number) for number in (topic.rows, topic.first, topic.end))
    size, commits = size_text(topic.bytes), pretty(topic.commits)
    return (topic.name, *numbers, size, commits, _ago(topic, now), slowest)


def _slowest(topic: TopicFigures) -> list[tuple[str, int]]:
    return sorted(topic.readers.items(), key=lambda reader: reader[1])


def _ago(topic: TopicFigures, now: float) -> str:
    if topic.newest is None:
        return "-"
    seconds = max(0.0, now - topic.newest.at)
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.0f} s ago"


def _rows(damage: TopicDamage) -> str:
    if not damage.rows:
        return "unknown"
    return f"{pretty(damage.rows.start)} to {pretty(damage.rows.stop)}"


def production_text(figures: ProductionFigures) -> str:
    """Return the figures of `penstock produce` as one table row."""
    lag_s = figures["worst_lag_s"]
    row = {
        "records": pretty(figures["records"]),
        "seconds": table_number(figures["seconds"]),
        "records/s": pretty(round(figures["rate"])),
        "worst lag": "-" if lag_s is None else f"{table_number(lag_s)} s",
    }
    return as_text(Table(columns=tuple(row), rows=(tuple(row.values()),), words=0))
