"""A topic: a durable, ordered log of rows in a directory. An offset is the number of a row.

topic.json                      what the rows look like, and how long they stay
segments/<unique>.arrow         the rows
commits/<first row>.json        which segments hold the rows from there on
complete.json                   up to where source batches are complete, if no commit says so
readers/<reader>.json           how far each reader has read
lock                            held by the writer
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace as replace_fields
from pathlib import Path

import pyarrow as pa

from penstock.core.frozen_dict import FrozenDict
from penstock.errors import DamagedError, InputError, TopicError, TruncatedError
from penstock.files.atomic import full_disk, replace
from penstock.topics.embedded.commit import COMMITS, Commit
from penstock.topics.embedded.commit_chain import Chain
from penstock.topics.embedded.description import (
    DESCRIPTION,
    OTHER_NAME,
    Description,
    KafkaTopic,
    create_directory,
    merge_descriptions,
    read_description,
)
from penstock.topics.embedded.file_rows import (
    Piece,  # noqa: F401  (plans of earlier versions name it here)
)
from penstock.topics.embedded.retention import Retention
from penstock.topics.embedded.segment import SEGMENTS, Segment
from penstock.topics.partition import Partition
from penstock.topics.port import RowPiece, SegmentWriter, Transaction
from penstock.topics.row_stores import open_rows
from penstock.topics.schema import first_difference, with_event


class Topic:
    """A topic as this process knows it; `refresh` reads new commits of other processes."""

    def __init__(self, directory: Path, description: Description) -> None:
        self.directory = directory
        self.schema, self.retention, self.partition = (
            description.schema,
            description.retention,
            description.partition,
        )
        self.added = description.added
        self._chain = Chain(directory)
        self.kafka = description.kafka
        self._rows = open_rows(directory, description)

    @classmethod
    def create(
        cls,
        directory: Path,
        schema: pa.Schema,
        retention: Retention | None = None,
        partition: Partition | None = None,
        *,
        may_add: bool = False,
        kafka: Callable[[str], KafkaTopic] | None = None,
    ) -> "Topic":
        """Create a topic, or open it if it exists with the same schema and partition.

        A given retention replaces the earlier one. With
        `may_add`, new nullable columns are added to the topic. `kafka` makes the topic of Kafka
        for the rows of a new one.
        """
        directory = directory.resolve()
        new = Description(
            schema=with_event(schema), retention=retention or Retention(), partition=partition
        )
        if partition is not None:
            partition.check(new.schema)
        path = directory / DESCRIPTION
        with full_disk(directory.name):
            if not path.is_file():
                if kafka is not None:
                    new = replace_fields(new, kafka=kafka(directory.name))
                create_directory(directory, new.to_bytes(directory.name))
            old = read_description(directory)
            description = merge_descriptions(old, new, retention, directory, may_add=may_add)
            if description != old:
                replace(path, description.to_bytes(directory.name))
        return cls(directory, description)

    @classmethod
    def open(cls, directory: Path, expected: pa.Schema | None = None) -> "Topic":
        """Open a topic; `InputError` names the first difference from what the reader expects."""
        directory = directory.resolve()
        description = read_description(directory)
        difference = first_difference(with_event(expected), description.schema) if expected else ""
        if difference:
            raise InputError("schema", difference, OTHER_NAME, str(directory))
        return cls(directory, description)

    @property
    def name(self) -> str:
        """The name of the topic, which is that of its directory."""
        return self.directory.name

    @property
    def commits_directory(self) -> Path:
        """Where the file of a new commit appears."""
        return self.directory / COMMITS

    @property
    def first(self) -> int:
        """The first row that has not been removed."""
        return self._chain.first

    @property
    def end(self) -> int:
        """The offset after the last row, as of the last refresh."""
        return self._chain.end

    @property
    def newest(self) -> Commit | None:
        """The last commit, as of the last refresh."""
        return self._chain.newest

    @property
    def end_bytes(self) -> int:
        """Bytes of all segments that were ever published."""
        newest = self._chain.newest
        return newest.bytes_before + newest.bytes if newest else 0

    @property
    def commit_count(self) -> int:
        """The number of existing commits."""
        return len(self._chain)

    def refresh(self) -> int:
        """Read new commits and return the end; cheap if there are none."""
        return self._chain.refresh()

    def oldest_first(self) -> Iterator[Commit]:
        """Yield all commits, read lazily."""
        return self._chain.oldest_first()

    def commits(self, start: int, end: int) -> tuple[Commit, ...]:
        """Return the commits that hold rows [start, end)."""
        if not 0 <= start <= end:
            raise TopicError(self.name, f"rows {start} to {end} were asked for")
        if end > self.end and end > self.refresh():
            raise TopicError(self.name, f"ends at {self.end}, but rows up to {end} were asked for")
        return tuple(self._chain.overlapping(start, end))

    def pieces(self, start: int, end: int) -> tuple[RowPiece, ...]:
        """Return the pieces that hold rows [start, end), in order."""
        return tuple(piece for _, piece in self._located(start, end))

    def read(
        self, start: int, end: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield exactly rows [start, end), in order."""
        for offset, piece in self._located(start, end):
            try:
                for batch in piece.read(columns):
                    self._check(piece, batch.schema, columns)
                    yield batch
            except DamagedError:
                if offset < self.first:  # removed meanwhile; this reader is not registered
                    raise TruncatedError(self.name, offset, self.first) from None
                raise

    def begin(self, writer: str, batch: int) -> Transaction:
        """Begin a transaction of a writer that is no task."""
        return self._rows.begin(writer, batch)

    def segment_writer(self, transaction: Transaction | None = None) -> SegmentWriter:
        """Start a segment; its rows are in the topic once it is published."""
        return self._rows.write(self.schema, self.partition, transaction)

    def last_batch(self, writer: str) -> int | None:
        """Return the number of the last batch that a writer has published."""
        return self.newest.batches.get(writer) if self.newest else None

    def publish(
        self,
        writer: str,
        batch: int,
        segments: Sequence[Segment],
        at: float,
        *,
        is_complete: bool = True,
        event_times: Mapping[str, int | None] = FrozenDict(),
    ) -> bool:
        """Append segments as one commit; False if this batch of the writer was published before.

        `is_complete` says that no row of the same source batch follows, `event_times` up to which
        times source batches are complete. Batch numbers of a writer only grow. Any process may
        publish at any time: a commit file can be created once, and the slower process publishes
        after it.
        """
        with full_disk(self.name):
            self.refresh()
            if not self._has(writer, batch):  # its segments may have been removed by now
                self._rows.sync(segments)
            while not self._has(writer, batch):
                if not segments:
                    return True
                commit = self._next(writer, batch, segments, at)
                if self._chain.add(
                    replace_fields(commit, is_complete=is_complete, event_times=event_times)
                ):
                    return True
                self.refresh()
        return False

    def remove_before(self, offset: int) -> int:
        """Remove whole commits that end at or before the offset; return how many rows went."""
        removed = self._chain.remove_before(offset)
        if removed:
            self._rows.remove([segment for commit in removed for segment in commit.segments])
        return sum(commit.rows for commit in removed)

    def _has(self, writer: str, batch: int) -> bool:
        last = self.last_batch(writer)
        return last is not None and batch <= last

    def _next(self, writer: str, batch: int, segments: Sequence[Segment], at: float) -> Commit:
        return Commit(
            first=self.end,
            rows=sum(segment.rows for segment in segments),
            writer=writer,
            batch=batch,
            at=at,
            segments=tuple(segments),
            bytes_before=self.end_bytes,
            batches={**(self.newest.batches if self.newest else {}), writer: batch},
        )

    def _located(self, start: int, end: int) -> Iterator[tuple[int, RowPiece]]:
        for commit in self.commits(start, end):
            first = commit.first
            for segment in commit.segments:
                low, high = max(start, first), min(end, first + segment.rows)
                if low < high:
                    added_to = self.schema if self.added else None
                    yield (
                        low,
                        self._rows.find(segment, low - first, high - first, commit.at, added_to),
                    )
                first += segment.rows

    def _check(self, piece: RowPiece, stored: pa.Schema, columns: Sequence[str] | None) -> None:
        expected = self.schema
        if columns is not None:
            expected = pa.schema([expected.field(name) for name in columns])
        if not stored.equals(expected):
            file = f"{SEGMENTS}/{piece.segment.file}"
            raise DamagedError(self.name, file, first_difference(expected, stored))
