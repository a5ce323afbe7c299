"""What engines, producers and monitors need of a topic; rows in files and in Kafka both provide it.

A topic is a chain of commits in a directory, and the rows that they name. Only the place of the
rows differs: a `RowStore` keeps them in files, or as messages of Kafka.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from penstock.topics.embedded.commit import Commit
from penstock.topics.embedded.retention import Retention
from penstock.topics.embedded.segment import Segment
from penstock.topics.partition import Partition


class RowPiece(Protocol):
    """Some rows of one segment, readable in any process."""

    @property
    def segment(self) -> Segment: ...
    @property
    def from_row(self) -> int: ...
    @property
    def to_row(self) -> int: ...
    @property
    def at(self) -> float: ...
    @property
    def rows(self) -> int: ...

    def read(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """Yield the rows."""

    def read_slices(self, slices: Sequence[int]) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield (slice, rows of it) for some slices of a partitioned topic."""


class SegmentWriter(Protocol):
    """Writes one segment; no reader of the topic sees it until it is published."""

    @property
    def rows(self) -> int: ...

    def write(self, rows: pa.RecordBatch | pa.Table) -> None:
        """Add rows; `InputError` if they do not fit the topic's schema."""

    def close(self) -> Segment | None:
        """Finish the segment; None if it has no rows."""

    def abort(self) -> None:
        """Remove what was written, closed or not."""


class Transaction(Protocol):
    """Makes the segments of one attempt durable together, once for each batch of a writer."""

    @property
    def note(self) -> bytes | None:
        """What an earlier attempt at the same batch has committed with its rows; None if none."""

    def digest(self) -> str:
        """Return a digest of all rows, which may not become more; empty if none is needed."""

    def deliver(self) -> None:
        """Send the rows of all segments; from now on these can be closed."""

    def commit(self, note: bytes) -> None:
        """Commit the rows, with a note for later attempts."""

    def abort(self) -> None:
        """Discard the rows; does nothing after a commit."""


class RowStore(Protocol):
    """Where the rows of one topic are."""

    def write(
        self, schema: pa.Schema, partition: Partition | None, transaction: Transaction | None
    ) -> SegmentWriter:
        """Start a segment."""

    def find(
        self, segment: Segment, from_row: int, to_row: int, at: float, schema: pa.Schema | None
    ) -> RowPiece:
        """Return rows [from_row, to_row) of a segment."""

    def sync(self, segments: Sequence[Segment]) -> None:
        """Make sure that segments survive a power failure; `DamagedError` if one is missing."""

    def remove(self, segments: Sequence[Segment]) -> None:
        """Remove segments that no commit names any more."""

    def verify(self, segment: Segment) -> pa.Schema:
        """Read a segment completely and return its schema; `DamagedError` if it is damaged."""

    def begin(self, writer: str, batch: int) -> Transaction:
        """Begin a transaction of a writer that is no task."""


class TopicView(Protocol):
    """What a monitor needs: how far a topic goes, and when its rows were committed."""

    @property
    def name(self) -> str: ...
    @property
    def directory(self) -> Path: ...
    @property
    def schema(self) -> pa.Schema: ...
    @property
    def first(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def newest(self) -> Commit | None: ...
    @property
    def end_bytes(self) -> int: ...

    def refresh(self) -> int:
        """Read new commits and return the end."""

    def commits(self, start: int, end: int) -> tuple[Commit, ...]:
        """Return the commits that hold rows [start, end)."""

    def oldest_first(self) -> Iterator[Commit]:
        """Yield all commits, read lazily."""


class ReadableTopic(TopicView, Protocol):
    """What the source of an operator needs: the rows, too."""

    def pieces(self, start: int, end: int) -> tuple[RowPiece, ...]:
        """Return the pieces that hold rows [start, end), in order."""

    def read(
        self, start: int, end: int, columns: Sequence[str] | None = None
    ) -> Iterator[pa.RecordBatch]:
        """Yield exactly rows [start, end), in order."""


class WritableTopic(TopicView, Protocol):
    """What a producer and the sink of an operator need."""

    @property
    def retention(self) -> Retention: ...
    @property
    def partition(self) -> Partition | None: ...

    def begin(self, writer: str, batch: int) -> Transaction:
        """Begin a transaction of a writer that is no task."""

    def segment_writer(self, transaction: Transaction | None = None) -> SegmentWriter:
        """Start a segment; its rows are in the topic once it is published."""

    def last_batch(self, writer: str) -> int | None:
        """Return the number of the last batch that a writer has published."""

    def publish(
        self,
        writer: str,
        batch: int,
        segments: Sequence[Segment],
        at: float,
        *,
        is_complete: bool = True,
        event_times: Mapping[str, int | None] = ...,
    ) -> bool:
        """Append segments as one commit; False if this batch was published before."""

    def remove_before(self, offset: int) -> int:
        """Remove whole commits that end at or before the offset; return how many rows went."""
