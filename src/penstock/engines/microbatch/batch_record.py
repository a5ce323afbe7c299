"""The record of a batch: what every task did and wrote. Pure values; format 1."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from penstock.engines.microbatch.chain_members import MemberRecord, read_members
from penstock.engines.microbatch.event_time import ColumnTime, EventTimeProgress
from penstock.engines.microbatch.replica_vote import ReplicaMemory, ReplicaVote
from penstock.state.version import Version
from penstock.topics.embedded.segment import Segment

VERSION = 1
#: Fields of a task with one entry for each slice.
_BY_SLICE = (
    *("slices", "loads", "counts"),
    *("slice_cpu_s", "slice_bytes_in", "slice_bytes_out", "slice_state_bytes"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """What one replica did in one batch."""

    rows_in: int
    rows_out: int
    #: Seconds in the operator's function, and its processor time.
    busy_s: float
    cpu_s: float | None
    began: float
    ended: float
    #: Chunks of rows, and the sum of (seconds of a chunk)^2 / (its rows): gives the variation.
    chunks: int = 0
    squares: float = 0.0
    #: With state: the slices of the task, and the seconds for each.
    slices: tuple[int, ...] = ()
    loads: tuple[float, ...] = ()
    #: Rows of each of these slices.
    counts: tuple[int, ...] = ()
    #: Of each of these slices: processor seconds, bytes of rows in and out, bytes of its state
    #: before the batch.
    slice_cpu_s: tuple[float, ...] = ()
    slice_bytes_in: tuple[int, ...] = ()
    slice_bytes_out: tuple[int, ...] = ()
    slice_state_bytes: tuple[int, ...] = ()
    #: The host that ran the task; empty without hosts.
    host: str = ""
    #: If there are several inputs: rows of each that each call of the function got, one call for
    #: each slice. A broadcast row is in all of them, but `counts` has it with slice 0 only.
    inputs: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: Rows that arrived after the watermark.
    late: int = 0
    #: Rows that calls of the function removed, and rows that they added.
    filtered: int = 0
    expanded: int = 0
    #: Rows on which the function failed, sent to the error topic.
    put_aside: int = 0
    #: Without a controller: what the replica decided in this batch, and what it remembers.
    vote: ReplicaVote | None = None
    memory: ReplicaMemory | None = None
    #: Of a chain: what each member did.
    members: tuple[MemberRecord, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRecord:
    """One batch of one operator."""

    batch: int
    #: Offsets by topic; the batch read the rows between them, except dropped ones.
    start: Mapping[str, int] = field(default_factory=dict)
    end: Mapping[str, int] = field(default_factory=dict)
    planned_at: float
    committed_at: float
    tasks: tuple[TaskRecord, ...]
    dropped: Mapping[str, int] = field(default_factory=dict)
    #: Rows that waited when it was planned, including its own; None if unknown.
    waiting: int | None = None
    #: Rows written, by the second (a float) in which they were due at their producer.
    events: tuple[tuple[float, int], ...] = ()
    outputs: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    #: The state after this batch, and the latest event time of each input in source batches that
    #: were read completely.
    state: Version | None = None
    latest: Mapping[str, int | None] = field(default_factory=dict)
    #: Sums over all batches up to this one (`operator_totals.py`); empty in old records.
    totals: Mapping[str, int] = field(default_factory=dict)
    #: A copy of the batch in Spark's offset log, to restore the log from; empty in old records.
    offset_log: str = ""
    #: How far each input is, by timestamp column, and all of them together.
    progress: Mapping[str, EventTimeProgress] = field(default_factory=dict)
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
        data["tasks"] = [_write_task(task) for task in data["tasks"]]
        return {"version": VERSION, **data}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "BatchRecord":
        """Read what `to_json` wrote."""
        fields = {key: value for key, value in data.items() if key != "version"}
        fields["tasks"] = tuple(_read_task(task) for task in data["tasks"])
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


def _write_task(data: dict[str, Any]) -> dict[str, Any]:
    """Leave out what only some runs have, for readers of earlier versions."""
    own = {"vote", "memory", "members"}
    return {name: value for name, value in data.items() if name not in own or value}


def _read_task(data: Mapping[str, Any]) -> TaskRecord:
    fields: dict[str, Any] = {name: tuple(data.get(name, ())) for name in _BY_SLICE}
    inputs = {topic: tuple(rows) for topic, rows in data.get("inputs", {}).items()}
    vote, memory = data.get("vote"), data.get("memory")
    fields["vote"] = ReplicaVote(**vote) if vote else None
    fields["members"] = read_members(data.get("members", ()))
    fields["memory"] = ReplicaMemory(**memory) if memory else None
    return TaskRecord(**{**data, **fields, "inputs": inputs})


def read_source_offsets(offset_log: str) -> tuple[str, ...]:
    """Return the offsets of a batch in Spark's offset log, one for each source.

    >>> read_source_offsets('v1\\n{"batchWatermarkMs":0}\\n{"logOffset":4}')
    ('{"logOffset":4}',)
    """
    return tuple(offset_log.splitlines()[2:])


def write_record(record: BatchRecord) -> bytes:
    """Write the file of a record: the record, and a checksum of it."""
    data = record.to_json()
    return _write_line(data | {"crc": zlib.crc32(_write_line(data))})


def read_record(content: bytes) -> BatchRecord:
    """Read what `write_record` wrote, or an old one without a checksum.

    `ValueError` names the damage.
    """
    try:
        data = json.loads(content)
        version, crc = data["version"], data.pop("crc", None)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("is empty, cut short or no record of a batch") from None
    if version != VERSION:
        raise ValueError(f"has version {version}, only {VERSION} can be read")
    if crc is not None and zlib.crc32(_write_line(data)) != crc:
        raise ValueError("was altered: its checksum differs")
    try:
        return BatchRecord.from_json(data)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("is no record of a batch that this version can read") from None


def _write_line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"


def have_same_input(kept: BatchRecord, attempt: BatchRecord) -> bool:
    """Whether a later attempt at a batch reads the rows of its record, as far as both are known.

    The start of a first batch may have moved: retention removes rows that were read.
    """
    known, planned = read_source_offsets(kept.offset_log), read_source_offsets(attempt.offset_log)
    if known and planned and known != planned:
        return False
    has_begin = all(kept.start.get(name, low) <= low for name, low in attempt.start.items())
    return has_begin and dict(kept.end) == dict(attempt.end)
