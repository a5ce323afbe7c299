"""Spark's checkpoint of a query, as far as others may know it: batches, offsets, partitions.

Spark writes the offsets of a batch before it runs, and its commit afterwards.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedBatch:
    """A batch as Spark's log of offsets has it."""

    number: int
    #: Into how many parts the state is cut.
    partitions: int
    #: By topic: the end of what it reads.
    ends: Mapping[str, int] = field(default_factory=dict)
    planned_at: float = 0.0
    #: In microseconds; 0 where nothing has one.
    watermark: int = 0
    is_committed: bool = False


def last_batch(checkpoint: Path) -> PlannedBatch | None:
    """Return the newest batch that was planned; None if there is none."""
    numbers = [int(path.name) for path in checkpoint.glob("offsets/*") if path.name.isdigit()]
    return planned_batch(checkpoint, max(numbers)) if numbers else None


def planned_batch(checkpoint: Path, number: int) -> PlannedBatch | None:
    """Return a batch by its number; None if there is no such."""
    path = checkpoint / "offsets" / str(number)
    try:
        _, metadata, *offsets = path.read_text(encoding="utf-8").splitlines()
        planned_at = path.stat().st_mtime
    except FileNotFoundError:
        return None
    about = json.loads(metadata)
    return PlannedBatch(
        number=number,
        partitions=int(about["conf"][PARTITIONS]),
        watermark=int(about.get("batchWatermarkMs", 0)) * 1000,
        ends={topic: end for line in offsets for topic, end in _ends(line)},
        planned_at=planned_at,
        is_committed=(checkpoint / "commits" / str(number)).exists(),
    )


def rename_topics_in_log(text: str, names: Mapping[str, str]) -> str:
    """Return a batch of Spark's log of offsets with other names of topics.

    Only offsets of this engine's own source are touched; those of other sources have no `at`.

    >>> rename_topics_in_log('v1\\n{}\\n{"at": {"a": 3}, "skips": {}}', {"a": "b"})
    'v1\\n{}\\n{"at": {"b": 3}, "skips": {}}'
    """
    head, offsets = text.split("\n")[:2], text.split("\n")[2:]
    return "\n".join([*head, *(_rename_in_offset(line, names) for line in offsets)])


def _rename_in_offset(line: str, names: Mapping[str, str]) -> str:
    try:
        offset = json.loads(line)
    except ValueError:  # a dash, or the form of another source
        return line
    if not isinstance(offset, dict) or not isinstance(offset.get("at"), dict):
        return line
    for key, value in offset.items():
        if isinstance(value, dict):
            offset[key] = {names.get(topic, topic): inner for topic, inner in value.items()}
    return json.dumps(offset)


def _ends(line: str) -> Iterator[tuple[str, int]]:
    """A source that had nothing yet is a dash."""
    offset: Any = json.loads(line) if line != "-" else None
    yield from offset["at"].items() if offset else ()
