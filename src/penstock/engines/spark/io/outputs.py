"""The segments that one task writes, one for each topic."""

from collections.abc import Mapping
from types import TracebackType
from typing import Protocol

import pyarrow as pa

from penstock.engines.microbatch.event_counts import Events, merge, sketch
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.segment import Segment
from penstock.topics.embedded.topic import Topic
from penstock.topics.port import SegmentWriter, Transaction
from penstock.topics.schema import EVENT


class RowOutputs(Protocol):
    """What tasks write rows to: segments, or the next member of a chain."""

    @property
    def rows(self) -> int:
        """Rows of the operator's main output."""
        ...

    @property
    def bytes(self) -> int:
        """Bytes of all rows that were written, as they are in memory."""
        ...

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        """Write rows to the main output, or to another topic."""
        ...

    def schema(self, topic: str) -> pa.Schema:
        """The schema of a topic."""
        ...


class TaskOutputs:
    """Opens a segment for its first row; removes all segments if the task fails."""

    def __init__(
        self,
        layout: RunLayout,
        schemas: Mapping[str, pa.Schema],
        transaction: Transaction | None = None,
    ) -> None:
        self._layout, self._schemas, self._transaction = layout, schemas, transaction
        self._writers: dict[str, SegmentWriter] = {}
        self._sketches: list[Events] = []
        #: The main output; rows of side outputs are not counted.
        self.main = next(iter(schemas), None)
        self.rows = 0
        #: Bytes of all rows, of side outputs too, as they are in memory.
        self.bytes = 0

    def write(self, batch: pa.RecordBatch, topic: str | None = None) -> None:
        """Write rows to the operator's topic, or to another one."""
        name = topic or self.main
        if name is None or not batch.num_rows:
            return
        if name not in self._writers:
            self._writers[name] = Topic.open(self._layout.topic(name)).segment_writer(
                self._transaction
            )
        self._writers[name].write(batch)
        self.bytes += batch.nbytes
        if name == self.main:
            self.rows += batch.num_rows
            self._sketches.append(sketch(batch[EVENT]))

    def schema(self, topic: str) -> pa.Schema:
        """The schema of a topic."""
        return self._schemas[topic]

    def events(self) -> Events:
        """Return the due times of the rows of the main output."""
        return merge(self._sketches)

    def close(self) -> dict[str, Segment]:
        """Finish all segments."""
        if self._transaction is not None:
            self._transaction.deliver()
        done = {name: writer.close() for name, writer in self._writers.items()}
        self._writers = {}
        return {name: segment for name, segment in done.items() if segment is not None}

    def __enter__(self) -> "TaskOutputs":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for writer in self._writers.values():
            writer.abort()
        if self._transaction is not None:
            self._transaction.abort()
