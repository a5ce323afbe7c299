"""A plain streaming query from one topic to another, as a user would write it without Penstock."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    DataSourceStreamReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import StructType

from penstock.topics.embedded.segment import Segment
from penstock.topics.embedded.topic import Topic

# Spark's Python workers cannot import the helpers of benchmarks
cloudpickle.register_pickle_by_value(sys.modules[__name__])

#: Tasks of a batch, as many as the replicas of the operator beside it.
TASKS = 2
#: How often an idle plain query asks its source; the default of Spark.
POLLING = ("spark.sql.streaming.pollingDelay", "10ms")


class NewRows(DataSource):
    """All rows of a topic that no batch has read, with their stamps."""

    @classmethod
    def name(cls) -> str:
        return "new-rows"

    def schema(self) -> StructType:
        return from_arrow_schema(Topic.open(Path(self.options["topic"])).schema, False)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002
        return NewRowsReader(self.options["topic"])


class NewRowsReader(DataSourceStreamReader):
    """Reads to the end of the topic in every batch."""

    def __init__(self, topic: str) -> None:
        self.topic = topic
        self.opened: Topic | None = None

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        if self.opened is None:
            self.opened = Topic.open(Path(self.topic))
        return {"at": self.opened.refresh()}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        cuts = np.linspace(start["at"], end["at"], TASKS + 1).astype(int).tolist()
        return [InputPartition(pair) for pair in pairwise(cuts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from Topic.open(Path(self.topic)).read(*partition.value)


@dataclass
class WrittenSegment(WriterCommitMessage):
    """What one task wrote."""

    segment: Segment | None


class TopicRowsTarget(DataSource):
    """A sink that appends to a topic."""

    @classmethod
    def name(cls) -> str:
        return "topic-rows-target"

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamArrowWriter:  # noqa: N802, ARG002
        return TopicRowsWriter(self.options["topic"])


class TopicRowsWriter(DataSourceStreamArrowWriter):
    """Each task writes a segment; a commit publishes those of a batch once."""

    def __init__(self, topic: str) -> None:
        self.topic = topic

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        writer = Topic.open(Path(self.topic)).segment_writer()
        for batch in iterator:
            if batch.num_rows:
                writer.write(batch)
        return WrittenSegment(writer.close())

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        written = [m.segment for m in messages if isinstance(m, WrittenSegment)]
        segments = [segment for segment in written if segment is not None]
        Topic.open(Path(self.topic)).publish("plain", batchId, segments, time.time())


def start_plain_hop(
    spark: SparkSession,
    source: Topic,
    target: Topic,
    checkpoint: Path,
    transform: Callable[[DataFrame], DataFrame],
) -> StreamingQuery:
    """Start the query with Spark's default trigger: the next batch starts when one has ended."""
    for side in (NewRows, TopicRowsTarget):
        spark.dataSource.register(side)
    before = spark.conf.get(POLLING[0])
    spark.conf.set(*POLLING)
    try:
        frame = spark.readStream.format(NewRows.name()).option("topic", str(source.directory))
        writer: Any = transform(frame.load()).writeStream.format(TopicRowsTarget.name())
        writer = writer.option("topic", str(target.directory))
        query: StreamingQuery = writer.option("checkpointLocation", str(checkpoint)).start()
        return query
    finally:
        spark.conf.set(POLLING[0], before)
