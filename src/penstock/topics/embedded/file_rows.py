"""Rows of a topic in files of its directory, read by memory map."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from penstock.errors import DamagedError
from penstock.files.atomic import sync_directory
from penstock.topics.embedded.segment import (
    SEGMENTS,
    FileSegmentWriter,
    Segment,
    read_rows,
    read_slices,
    verify,
)
from penstock.topics.partition import Partition
from penstock.topics.port import Transaction


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """Rows [from_row, to_row) of one segment, readable in any process."""

    segment: Segment
    path: Path
    from_row: int
    to_row: int
    #: When the rows were committed.
    at: float
    #: The schema of the topic, if the segment may lack some columns; None if not.
    schema: pa.Schema | None = None

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.to_row - self.from_row

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""
        return read_rows(self.path, self.segment, self.from_row, self.to_row, columns, self.schema)

    def read_slices(self, slices: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (slice, rows of it) for some slices of a partitioned topic."""
        return read_slices(self.path, self.segment, self.from_row, self.to_row, slices, self.schema)


class FileTransaction:
    """Files need no transaction: they are invisible until a commit names them."""

    note: bytes | None = None

    def digest(self) -> str:
        """Return nothing: no earlier attempt counts."""
        return ""

    def deliver(self) -> None:
        """Do nothing."""

    def commit(self, note: bytes) -> None:
        """Do nothing."""

    def abort(self) -> None:
        """Do nothing."""


class FileRows:
    """The segments in the directory of a topic."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def write(
        self,
        schema: pa.Schema,
        partition: Partition | None,
        transaction: Transaction | None,  # noqa: ARG002  (signature)
    ) -> FileSegmentWriter:
        """Start a segment."""
        return FileSegmentWriter(self._directory, schema, partition)

    def find(
        self, segment: Segment, from_row: int, to_row: int, at: float, schema: pa.Schema | None
    ) -> Piece:
        """Return rows [from_row, to_row) of a segment."""
        path = self._path(segment)
        return Piece(
            segment=segment, path=path, from_row=from_row, to_row=to_row, at=at, schema=schema
        )

    def sync(self, segments: Sequence[Segment]) -> None:
        """Make the names of files survive a power failure; their content is synced already."""
        for segment in segments:
            path = self._path(segment)
            if not path.is_file() or path.stat().st_size != segment.bytes:
                problem = "is missing or cut short before it was published"
                raise DamagedError(self._directory.name, f"{SEGMENTS}/{segment.file}", problem)
        sync_directory(self._directory / SEGMENTS)

    def remove(self, segments: Sequence[Segment]) -> None:
        """Remove files."""
        for segment in segments:
            self._path(segment).unlink(missing_ok=True)

    def verify(self, segment: Segment) -> pa.Schema:
        """Read a file completely and return its schema; `DamagedError` if it is damaged."""
        return verify(self._path(segment), segment)

    def begin(self, writer: str, batch: int) -> FileTransaction:  # noqa: ARG002  (signature)
        """Begin nothing."""
        return FileTransaction()

    def _path(self, segment: Segment) -> Path:
        return self._directory / SEGMENTS / segment.file
