"""A commit: the rows it publishes, their writer, and the segments that hold them. Version 1."""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from penstock.topics.embedded.segment import Segment

VERSION = 1
COMMITS = "commits"


@dataclass(frozen=True, kw_only=True)
class Commit:
    """Rows [first, end) of a topic, published atomically."""

    first: int
    rows: int
    writer: str
    batch: int
    #: When it was committed, in seconds since the epoch.
    at: float
    segments: tuple[Segment, ...]
    #: Bytes of all earlier commits, including removed ones.
    bytes_before: int = 0
    #: The last batch of every writer, including this commit.
    batches: Mapping[str, int] = field(default_factory=dict)
    #: Whether it ends a source batch. Rows of a source batch are not sorted by time, so its newest
    #: time counts only after all of them have been read.
    is_complete: bool = True
    #: By timestamp column: the time up to which source batches are complete, in microseconds;
    #: None if unknown. The slowest of several inputs decides.
    event_times: Mapping[str, int | None] = field(default_factory=dict)

    @property
    def end(self) -> int:
        """The offset after the last row."""
        return self.first + self.rows

    @cached_property
    def bytes(self) -> int:
        """The size of its segments on disk."""
        return sum(segment.bytes for segment in self.segments)

    def to_json(self) -> dict[str, Any]:
        """Write it as a plain dictionary."""
        return {
            "version": VERSION,
            "first": self.first,
            "rows": self.rows,
            "writer": self.writer,
            "batch": self.batch,
            "at": self.at,
            "segments": [segment.to_json() for segment in self.segments],
            "bytes_before": self.bytes_before,
            "batches": dict(self.batches),
            "complete": self.is_complete,
            "event_times": dict(self.event_times),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Commit":
        """Read what `to_json` wrote."""
        return cls(
            first=data["first"],
            rows=data["rows"],
            writer=data["writer"],
            batch=data["batch"],
            at=data["at"],
            segments=tuple(map(Segment.from_json, data["segments"])),
            bytes_before=data["bytes_before"],
            batches=data["batches"],
            is_complete=data.get("complete", True),
            event_times=data.get("event_times", {}),
        )


def commit_name(first: int) -> str:
    """Name of the file of the commit that begins with this row.

    >>> commit_name(42)
    '00000000000000000042.json'
    """
    return f"{first:020d}.json"


def write_commit(commit: Commit) -> bytes:
    """Return the content of a commit file, with a checksum."""
    data = commit.to_json()
    return _line(data | {"crc": zlib.crc32(_line(data))})


def read_commit(content: bytes) -> Commit:
    """Parse a commit file; `ValueError` describes damage."""
    try:
        data = json.loads(content)
        version, crc = data["version"], data.pop("crc")
    except (ValueError, KeyError, TypeError):
        raise ValueError("is cut short, or no commit at all") from None
    if version != VERSION:
        raise ValueError(f"cannot read version {version}, only {VERSION}")
    if zlib.crc32(_line(data)) != crc:
        raise ValueError("was altered: its checksum differs")
    return Commit.from_json(data)


def _line(data: Mapping[str, Any]) -> bytes:
    return json.dumps(data, separators=(",", ":")).encode() + b"\n"
