"""Segments: files of rows in Arrow IPC format, written once, read by memory map without a copy."""

import os
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute

from penstock.errors import DamagedError
from penstock.files.atomic import full_disk
from penstock.topics.kafka.message_place import MessagePlace
from penstock.topics.partition import Partition, pack, shares, unpack
from penstock.topics.schema import fill_columns, fit

# pyarrow.compute creates its functions at import, so type checkers do not see them
pc: Any = pyarrow.compute

SEGMENTS = "segments"
#: Buffers of Arrow are mostly larger than this and are not copied; headers are smaller.
_BUFFER_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A file of rows, with its size and checksum."""

    #: Name in the topic's folder of segments.
    file: str
    rows: int
    bytes: int
    #: CRC-32 of the whole file.
    crc: int
    #: By timestamp column: its newest time in microseconds; None if not computed.
    newest: Mapping[str, int] | None = field(default=None, hash=False)
    #: Its messages in Kafka, if it is no file; `file` is then a unique name.
    messages: MessagePlace | None = None

    def to_json(self) -> dict[str, Any]:
        """Write it as a plain dictionary."""
        data: dict[str, Any] = {"file": self.file, "rows": self.rows}
        data |= {"bytes": self.bytes, "crc": self.crc}
        if self.newest is not None:
            data["newest"] = dict(self.newest)
        if self.messages is not None:
            data["messages"] = self.messages.to_json()
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Segment":
        """Read what `to_json` wrote."""
        messages = data.get("messages")
        return cls(
            file=data["file"],
            rows=data["rows"],
            bytes=data["bytes"],
            crc=data["crc"],
            newest=data.get("newest"),
            messages=None if messages is None else MessagePlace.from_json(messages),
        )


class FileSegmentWriter:
    """Writes one segment of a topic; it is invisible until it is published."""

    def __init__(
        self, directory: Path, schema: pa.Schema, partition: Partition | None = None
    ) -> None:
        self._topic, self._schema, self._partition = directory.name, schema, partition
        self._path = directory / SEGMENTS / f"{uuid.uuid4().hex}.arrow"
        self._sink: _Sink | None = None
        self._writer: Any = None
        self._newest: dict[str, int] = {}
        self.rows = 0

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows; `InputError` if they do not fit the topic's schema."""
        fitting = fit(rows, self._schema)
        if not fitting.num_rows:
            return
        with full_disk(self._topic):
            if self._sink is None:
                self._sink = _Sink(self._path)
                self._writer = pa.ipc.new_file(self._sink, self._schema)
            if self._partition is None:
                self._writer.write(fitting)
            else:
                for batch in list_batches(fitting):
                    ordered, counts = self._partition.sort(batch)
                    self._writer.write_batch(ordered, custom_metadata=pack(counts))
        self.rows += fitting.num_rows
        self._newest = later_times(self._newest, newest_times(fitting))

    def close(self) -> Segment | None:
        """Sync the segment to disk; None, and no file, if it has no rows."""
        if self._sink is None:
            return None
        with full_disk(self._topic):
            self._writer.close()
            self._sink.sync()
        return Segment(
            file=self._path.name,
            rows=self.rows,
            bytes=self._sink.bytes,
            crc=self._sink.crc,
            newest=self._newest,
        )

    def abort(self) -> None:
        """Remove what was written, closed or not."""
        if self._sink is not None:
            self._sink.drop()
            self._path.unlink(missing_ok=True)


def newest_times(rows: pa.RecordBatch | pa.Table) -> dict[str, int]:
    """Return the newest time of each timestamp column, in microseconds."""
    times = {}
    for column in rows.schema:
        if pa.types.is_timestamp(column.type):
            newest = pc.max(rows.column(column.name)).cast(pa.timestamp("us"), safe=False)
            if newest.is_valid:
                times[column.name] = newest.value
    return times


def later_times(times: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Return the newest times of two parts.

    >>> later_times({"at": 3, "seen": 5}, {"at": 4})
    {'at': 4, 'seen': 5}
    """
    return {**times, **{name: max(time, times.get(name, time)) for name, time in other.items()}}


class _Sink:
    """A file that computes size and checksum while it is written."""

    closed = False

    def __init__(self, path: Path) -> None:
        self._stream = path.open("xb", buffering=_BUFFER_BYTES)
        self.bytes = self.crc = 0

    def write(self, data: Any) -> int:
        view = memoryview(data)
        self._stream.write(view)
        self.crc = zlib.crc32(view, self.crc)
        self.bytes += view.nbytes
        return view.nbytes

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        """Arrow asks for this after every batch; only `sync` has to go to disk."""

    def close(self) -> None:
        """Arrow closes what it writes to; the file still has to be synced."""

    def sync(self) -> None:
        self._stream.flush()
        os.fsync(self._stream.fileno())
        self._stream.close()

    def drop(self) -> None:
        with suppress(OSError):  # what is left in the buffer cannot be written either
            self._stream.close()


def read_rows(
    path: Path,
    segment: Segment,
    from_row: int,
    to_row: int,
    columns: Sequence[str] | None = None,
    schema: pa.Schema | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows [from_row, to_row) of a segment.

    With a schema, columns that were declared after the segment was written are null.
    The size is always checked, so that a memory map never ends early; the checksum when the
    first row is read, so that each segment is checked once however many readers share it.
    """
    for batch, _, low, high in _overlapping(path, segment, from_row, to_row):
        yield _select(path, batch, columns, schema).slice(low, high - low)


def _select(
    path: Path, batch: pa.RecordBatch, columns: Sequence[str] | None, schema: pa.Schema | None
) -> pa.RecordBatch:
    try:
        return select_columns(batch, columns, schema)
    except (ValueError, TypeError) as wrong:
        raise _damaged(path, str(wrong)) from None


def select_columns(
    batch: pa.RecordBatch, columns: Sequence[str] | None, schema: pa.Schema | None
) -> pa.RecordBatch:
    """Return some columns; with a schema, those that were declared later are null.

    `ValueError` names a column that is missing and must not be null.
    """
    if schema is None:
        return batch if columns is None else batch.select(list(columns))
    if columns is not None:
        schema = pa.schema([schema.field(name) for name in columns])
    return batch if batch.schema.equals(schema) else fill_columns(batch, schema)


def read_slices(
    path: Path,
    segment: Segment,
    from_row: int,
    to_row: int,
    slices: Sequence[int],
    schema: pa.Schema | None = None,
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Yield (slice, rows of it) of those rows [from_row, to_row) that belong to some slices.

    All slices together cover all rows, provided that earlier parts are read, too.
    """
    for batch, metadata, low, high in _overlapping(path, segment, from_row, to_row):
        try:
            counts = unpack(metadata)
        except ValueError as wrong:
            raise _damaged(path, str(wrong)) from None
        whole = _select(path, batch, None, schema)
        for number, first, rows in shares(counts, low, high, slices):
            yield number, whole.slice(first, rows)


def _overlapping(
    path: Path, segment: Segment, from_row: int, to_row: int
) -> Iterator[tuple[pa.RecordBatch, Any, int, int]]:
    """Yield (record batch, its metadata, first and last row of it that are wanted)."""
    source = _open(path, segment)
    if from_row == 0:
        _check_sum(path, segment, source)
    try:
        reader = pa.ipc.open_file(source)
        first = 0
        for number in range(reader.num_record_batches):
            batch, metadata = reader.get_batch_with_custom_metadata(number)
            low, high = max(from_row - first, 0), min(to_row - first, batch.num_rows)
            if low < high:
                yield batch, metadata, low, high
            first += batch.num_rows
            if first >= to_row:
                return
    except pa.ArrowInvalid as error:
        raise _damaged(path, f"is no Arrow file: {error}") from None
    raise _damaged(path, f"has {first} rows, expected {segment.rows}")


def list_batches(rows: pa.RecordBatch | pa.Table) -> Iterable[pa.RecordBatch]:
    """Return a table as one batch: fewer batches mean longer runs of each slice."""
    return [rows] if isinstance(rows, pa.RecordBatch) else rows.combine_chunks().to_batches()


def verify(path: Path, segment: Segment) -> pa.Schema:
    """Check a segment from its first byte to its last; return the schema of its rows."""
    source = _open(path, segment)
    _check_sum(path, segment, source)
    try:
        reader = pa.ipc.open_file(source)
        rows = sum(reader.get_batch(n).num_rows for n in range(reader.num_record_batches))
    except pa.ArrowInvalid as error:
        raise _damaged(path, f"is no Arrow file: {error}") from None
    if rows != segment.rows:
        raise _damaged(path, f"has {rows} rows, expected {segment.rows}")
    return reader.schema


def _open(path: Path, segment: Segment) -> Any:
    try:
        source = pa.memory_map(str(path))
    except FileNotFoundError:
        raise _damaged(path, "missing") from None
    if source.size() != segment.bytes:
        raise _damaged(path, f"has {source.size()} bytes, expected {segment.bytes}")
    return source


def _check_sum(path: Path, segment: Segment, source: Any) -> None:
    checksum = zlib.crc32(source.read_buffer())
    if checksum != segment.crc:
        raise _damaged(path, f"was altered: checksum {checksum:08x}, expected {segment.crc:08x}")


def _damaged(path: Path, problem: str) -> DamagedError:
    return DamagedError(path.parent.parent.name, f"{SEGMENTS}/{path.name}", problem)
