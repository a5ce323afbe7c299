"""Sources of plain Structured Streaming queries: topics and generated rows, as Arrow batches."""

import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import without_event

# Spark's Python workers cannot import the helpers of benchmarks
cloudpickle.register_pickle_by_value(sys.modules[__name__])

#: Tasks of a plain query, and the seconds of a batch whose size adapts.
TASKS, BATCH_S = 2, 1.0
#: Columns of generated rows, and rows generated together.
COLUMNS = "id long, v double"
CHUNK = 1 << 16


class _TwoTaskReader(DataSourceStreamReader):
    """Deals the rows of a batch evenly to two tasks."""

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        cuts = np.linspace(start["at"], end["at"], TASKS + 1).astype(int).tolist()
        return [InputPartition(pair) for pair in pairwise(cuts)]


class _EndlessReader(_TwoTaskReader):
    """Always has one more batch, of a fixed size."""

    def __init__(self, rows: int) -> None:
        self.rows, self.at = rows, 0

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        self.at += self.rows
        return {"at": self.at}


class TopicRows(DataSource):
    """The rows of a topic without stamps; batches last about a second."""

    @classmethod
    def name(cls) -> str:
        return "topic-rows"

    def schema(self) -> StructType:
        topic = Topic.open(Path(self.options["topic"]))
        return from_arrow_schema(without_event(topic.schema), False)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002
        return TopicReader(self.options["topic"])


class TopicReader(_TwoTaskReader):
    """Adapts the size of batches to the time that the last one took."""

    def __init__(self, topic: str) -> None:
        self.topic, self.size, self.asked_s, self.at = topic, 50_000.0, 0.0, -1

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802, ARG002
        now_s, at = time.monotonic(), start["at"]
        if at > self.at > -1:
            took_s = now_s - self.asked_s
            self.size *= min(max(BATCH_S / took_s, 0.5), 4.0)
        if at > self.at:
            self.asked_s, self.at = now_s, at
        return {"at": min(at + int(self.size), Topic.open(Path(self.topic)).end)}

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from _read_topic(Topic.open(Path(self.topic)), *partition.value)


class RepeatedTopicRows(TopicRows):
    """The rows of a topic over and over, in batches of a fixed size."""

    @classmethod
    def name(cls) -> str:
        return "repeated-topic-rows"

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802, ARG002
        return RepeatedTopicReader(self.options["topic"], int(self.options["rows"]))


class RepeatedTopicReader(_EndlessReader):
    """Continues with the beginning of the topic behind its end."""

    def __init__(self, topic: str, rows: int) -> None:
        super().__init__(rows)
        self.topic = topic

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        low, high = partition.value
        topic = Topic.open(Path(self.topic))
        while low < high:
            begin = low % topic.end
            end = min(begin + high - low, topic.end)
            yield from _read_topic(topic, begin, end)
            low += end - begin


def _read_topic(topic: Topic, begin: int, end: int) -> Iterator[pa.RecordBatch]:
    names = without_event(topic.schema).names
    for batch in topic.read(begin, end, names):
        yield pa.RecordBatch.from_arrays(batch.columns, names=names)


class GeneratedRows(DataSource):
    """Generated rows, in batches of a fixed size."""

    @classmethod
    def name(cls) -> str:
        return "generated-rows"

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: Any) -> DataSourceStreamReader:  # noqa: N802, ARG002
        return GeneratedReader(int(self.options["rows"]))


class GeneratedReader(_EndlessReader):
    """Generates numbered rows."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        low, high = partition.value
        values = np.random.default_rng(1).random(CHUNK)
        for first in range(low, high, CHUNK):
            ids = np.arange(first, min(first + CHUNK, high))
            arrays = [pa.array(ids), pa.array(values[: len(ids)])]
            yield pa.RecordBatch.from_arrays(arrays, names=["id", "v"])
