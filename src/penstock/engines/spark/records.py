"""The record of a batch: what every task did, what it wrote. The first one of a batch counts.

A batch that is run again after a crash may write other segments, but the record that is there
already wins, and its outputs are published. So all outputs of a batch appear, in all topics,
as one attempt made them. Two attempts at a batch read the same rows: a record of other rows is
refused, never taken for this batch. Records are the monitoring channel besides.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.engines.spark.event_time import ColumnTime, Progress
from penstock.errors import InputError, PenstockError
from penstock.state.version import Version
from penstock.topics.files import link_new, sync_directory, write_temporary
from penstock.topics.files import replace as replace_file
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
    #: Rows fewer, and rows more, than calls of the function were given.
    filtered: int = 0
    expanded: int = 0
    #: Rows that the function failed on, and that went to the error topic.
    put_aside: int = 0


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
    #: What the operator remembers after this batch, and the latest event time of each input in
    #: source batches that were read completely.
    state: Version | None = None
    latest: Mapping[str, int | None] = field(default_factory=dict)
    #: Sums over all batches up to this one (`totals.py`); empty in old records.
    totals: Mapping[str, int] = field(default_factory=dict)
    #: The batch in Spark's log of offsets, word for word; empty in old records. From it the
    #: log can be written again.
    offset_log: str = ""
    #: How far each input is, by timestamp column, and all of them together.
    progress: Mapping[str, Progress] = field(default_factory=dict)
    event_times: Mapping[str, int | None] = field(default_factory=dict)
    #: Inputs whose last source batch is not read completely yet.
    open_inputs: tuple[str, ...] = ()

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
        fields["open_inputs"] = tuple(data.get("open_inputs", ()))
        fields["progress"] = {
            topic: {column: ColumnTime(*times) for column, times in columns.items()}
            for topic, columns in data.get("progress", {}).items()
        }
        fields["events"] = tuple((second, rows) for second, rows in data["events"])
        fields["outputs"] = {
            topic: tuple(Segment.from_json(segment) for segment in segments)
            for topic, segments in data["outputs"].items()
        }
        return cls(**fields)


def _task(data: Mapping[str, Any]) -> TaskRecord:
    many = {name: tuple(data.get(name, ())) for name in ("slices", "loads", "counts")}
    return TaskRecord(**{**data, **many})


def source_offsets(offset_log: str) -> tuple[str, ...]:
    """Return the offsets that a batch of Spark's log has, one for each source.

    >>> source_offsets('v1\\n{"batchWatermarkMs":0}\\n{"logOffset":4}')
    ('{"logOffset":4}',)
    """
    return tuple(offset_log.splitlines()[2:])


def write_record(record: BatchRecord) -> bytes:
    """Write the file of a record: the record, and a checksum of it."""
    data = record.to_json()
    return _line(data | {"crc": zlib.crc32(_line(data))})


def read_record(content: bytes) -> BatchRecord:
    """Read what `write_record` wrote, or an old one without a checksum.

    `ValueError` says what is wrong with it.
    """
    try:
        data = json.loads(content)
        version, crc = data["version"], data.pop("crc", None)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("is empty, cut short or no record of a batch") from None
    if version != VERSION:
        raise ValueError(f"has version {version}, only {VERSION} can be read")
    if crc is not None and zlib.crc32(_line(data)) != crc:
        raise ValueError("was altered: its checksum differs")
    try:
        return BatchRecord.from_json(data)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("is no record of a batch that this version can read") from None


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


class BatchLog:
    """The records of one operator, followed from one batch to the next."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        numbers = self.numbers()
        #: The record that `news` reads next; at first, the oldest behind the last gap.
        self.next = next((n for n in reversed(numbers) if n - 1 not in set(numbers)), 0)

    def numbers(self) -> list[int]:
        """Return the batches that have a record, in order."""
        return sorted(int(path.stem) for path in self.directory.glob("[0-9]*.json"))

    def put(self, record: BatchRecord) -> BatchRecord:
        """Write a record, unless its batch has one; return the one that counts.

        `PenstockError` if that one is about other rows.
        """
        path = self._path(record.batch)
        aside = write_temporary(path, write_record(record))
        try:
            is_first = link_new(aside, path)
        finally:
            aside.unlink()
        sync_directory(self.directory)  # Spark's commit comes after it, also on the disk
        self._path(record.batch - KEPT).unlink(missing_ok=True)
        kept = record if is_first else self.get(record.batch)
        assert kept is not None
        if not have_same_input(kept, record):
            raise PenstockError(_mismatch(self.directory.name, kept, record))
        return kept

    def rewrite(self, record: BatchRecord) -> None:
        """Replace the record of a batch; only while nothing runs."""
        replace_file(self._path(record.batch), write_record(record))

    def get(self, batch: int) -> BatchRecord | None:
        """Return the record of a batch; None if there is none."""
        try:
            return read_record(self._path(batch).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            hint = (
                "restore the file from a backup; unless it is the newest of its operator it may"
                " also be removed: only figures about that batch are lost"
            )
            raise InputError(str(self._path(batch)), str(error), hint) from None

    def last(self) -> BatchRecord | None:
        """Return the newest record; None if there is none."""
        numbers = self.numbers()
        return self.get(numbers[-1]) if numbers else None

    def news(self) -> list[BatchRecord]:
        """Return the records that came since the last call."""
        found = []
        while (record := self.get(self.next)) is not None:
            found.append(record)
            self.next += 1
        return found

    def _path(self, batch: int) -> Path:
        return self.directory / f"{batch:020d}.json"


def have_same_input(kept: BatchRecord, attempt: BatchRecord) -> bool:
    """Whether a later attempt at a batch has the rows of its record, as far as both tell.

    Where a first batch begins may have moved on: retention removes rows that were read.
    """
    known, planned = source_offsets(kept.offset_log), source_offsets(attempt.offset_log)
    if known and planned and known != planned:
        return False
    has_begin = all(kept.start.get(name, low) <= low for name, low in attempt.start.items())
    return has_begin and dict(kept.end) == dict(attempt.end)


def _mismatch(operator: str, kept: BatchRecord, mine: BatchRecord) -> str:
    return (
        f"{operator}: batch {mine.batch} is planned with {_range_text(mine)}, but was committed"
        f" with {_range_text(kept)}: Spark's checkpoint does not fit the records of batches\n"
        "hint: stop the run and start it with --resume, which compares and repairs both"
    )


def _range_text(record: BatchRecord) -> str:
    parts = [f"{name} {record.start.get(name)} to {end}" for name, end in record.end.items()]
    return ", ".join(parts) or " ".join(source_offsets(record.offset_log)) or "no rows"
