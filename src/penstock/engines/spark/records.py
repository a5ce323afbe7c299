"""The record of a batch: what every task did, what it wrote. The first one of a batch counts.

A batch that is run again after a crash may write other segments, but the record that is there
already wins, and its outputs are published. So all outputs of a batch appear, in all topics,
as one attempt made them. Records are the monitoring channel besides.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.state.version import Version
from penstock.topics.files import link_new, write_temporary
from penstock.topics.segment import Segment

VERSION = 1
#: Records older than so many batches are removed.
KEPT = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """What one replica did in one batch."""

    rows_in: int
    rows_out: int
    #: Seconds in which the operator's function worked, and what the processor spent on it.
    busy_s: float
    cpu_s: float | None
    began: float
    ended: float
    #: Chunks of rows, and the sum of (seconds of a chunk)^2 / (its rows): gives the variation.
    chunks: int = 0
    squares: float = 0.0
    #: With state: the slices it worked on, and the seconds for each.
    slices: tuple[int, ...] = ()
    loads: tuple[float, ...] = ()
    #: Rows of each of these slices.
    counts: tuple[int, ...] = ()
    #: Rows that came too late.
    late: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord:
    """One batch of one operator."""

    batch: int
    #: Offsets of each topic that was read; rows between them, less what was dropped.
    start: Mapping[str, int] = field(default_factory=dict)
    end: Mapping[str, int] = field(default_factory=dict)
    planned_at: float
    committed_at: float
    tasks: tuple[TaskRecord, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    #: Rows that waited when it was planned, its own among them; None if nobody has looked.
    waiting: int | None = None
    #: Rows written, by the second (a float) in which they were due at their producer.
    events: tuple[tuple[float, int], ...] = ()
    outputs: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    #: What the operator remembers after this batch, and the latest event time of each input.
    state: Version | None = None
    latest: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def replicas(self) -> int:
        """Tasks that ran."""
        return len(self.tasks)

    @property
    def rows_in(self) -> int:
        """Rows that were processed."""
        return sum(task.rows_in for task in self.tasks)

    @property
    def rows_out(self) -> int:
        """Rows that were written to the operator's topic."""
        return sum(task.rows_out for task in self.tasks)

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries."""
        data = asdict(replace(self, outputs={}, state=None))
        data["outputs"] = {
            topic: [segment.to_json() for segment in segments]
            for topic, segments in self.outputs.items()
        }
        data["state"] = self.state.to_json() if self.state else None
        return {"version": VERSION, **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BatchRecord":
        """Read what `to_json` wrote."""
        fields = {key: value for key, value in data.items() if key != "version"}
        fields["tasks"] = tuple(_task(task) for task in data["tasks"])
        state = data.get("state")
        fields["state"] = Version.from_json(state) if state else None
        fields["events"] = tuple((second, rows) for second, rows in data["events"])
        fields["outputs"] = {
            topic: tuple(Segment.from_json(segment) for segment in segments)
            for topic, segments in data["outputs"].items()
        }
        return cls(**fields)


def _task(data: Mapping[str, Any]) -> TaskRecord:
    many = {name: tuple(data.get(name, ())) for name in ("slices", "loads", "counts")}
    return TaskRecord(**{**data, **many})


class BatchLog:
    """The records of one operator, followed from one batch to the next."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        numbers = [int(path.stem) for path in directory.glob("[0-9]*.json")]
        #: The record that `news` reads next.
        self.next = min(numbers, default=0)

    def put(self, record: BatchRecord) -> BatchRecord:
        """Write a record, unless its batch has one; return the one that counts."""
        path = self._path(record.batch)
        aside = write_temporary(path, json.dumps(record.to_json(), separators=(",", ":")).encode())
        try:
            is_first = link_new(aside, path)
        finally:
            aside.unlink()
        self._path(record.batch - KEPT).unlink(missing_ok=True)
        kept = record if is_first else self.get(record.batch)
        assert kept is not None
        return kept

    def get(self, batch: int) -> BatchRecord | None:
        """Return the record of a batch; None if there is none."""
        try:
            text = self._path(batch).read_text(encoding="utf-8")
        except FileNotFoundError:
            return None
        return BatchRecord.from_json(json.loads(text))

    def last(self) -> BatchRecord | None:
        """Return the newest record; None if there is none."""
        numbers = [int(path.stem) for path in self.directory.glob("[0-9]*.json")]
        return self.get(max(numbers)) if numbers else None

    def news(self) -> list[BatchRecord]:
        """Return the records that came since the last call."""
        found = []
        while (record := self.get(self.next)) is not None:
            found.append(record)
            self.next += 1
        return found

    def _path(self, batch: int) -> Path:
        return self.directory / f"{batch:020d}.json"
