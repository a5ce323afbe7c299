"""The streaming source of an operator: exactly k partitions a batch, and no more rows than k carry.

It lives in a process of its own beside the driver and is asked before every batch. A frame
operator gets the rows themselves; a batch operator gets one row a task that says which rows to
work on, because its function is called inside the sink and no data row needs to pass the JVM.
"""

import pickle
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.io.plans import TaskInput
from penstock.engines.spark.operator_config import OperatorConfig
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import without_event

FORMAT = "penstock-source"
#: The option that leaves `_event` out for a function that does not look at it.
STAMPS = "stamps"
#: The option that names the one topic to read, for an operator that reads each by itself.
TOPIC = "topic"
#: The one column of a row that says what a task shall do.
TASK = StructType([StructField("task", BinaryType())])


class TopicSource(DataSource):
    """What Spark reads for an operator, with options run and operator.

    Each query needs a registration of its own: when its process starts, Spark writes into the
    environment that belongs to the registration, unguarded, while the tasks of every other
    query with the same registration are being serialised with it.
    """

    @classmethod
    def name(cls) -> str:
        """The name under which Spark knows it."""
        return FORMAT

    def schema(self) -> StructType:
        """Rows of the topic, or one task a row."""
        layout, config = _load_job(self.options)
        if config.source.passes_tasks:
            return TASK
        rows = Topic.open(layout.topic(self.options.get(TOPIC, config.reads[0]))).schema
        is_plain = self.options.get(STAMPS) == "no"
        return from_arrow_schema(without_event(rows) if is_plain else rows, False)

    def streamReader(self, schema: StructType) -> "TopicReader":  # noqa: N802
        """Make the reader; Spark does so in the source's process and in each task."""
        topic = self.options.get(TOPIC)
        return TopicReader(self.options["run"], self.options["operator"], schema, topic)


def _load_job(options: Mapping[str, str]) -> tuple[RunLayout, OperatorConfig]:
    layout = RunLayout(Path(options["run"]))
    return layout, OperatorConfig.load(layout, options["operator"])


class TaskPartition(InputPartition):
    """One task."""

    def __init__(self, value: TaskInput) -> None:
        super().__init__(value)


class TopicReader(DataSourceStreamReader):
    """Decides what the next batch reads."""

    def __init__(self, run: str, operator: str, schema: StructType, topic: str | None) -> None:
        self._run, self._operator, self._schema, self._topic = run, operator, schema, topic
        self._planner: BatchPlanner | None = None

    @property
    def _batches(self) -> BatchPlanner:
        # made where it is used: a task's copy of this object must not open topics and logs
        if self._planner is None:
            self._planner = BatchPlanner(RunLayout(Path(self._run)), self._operator, self._topic)
        return self._planner

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Begin with the oldest row that is there."""
        return {"at": self._batches.first(), "skips": {}}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """The limit is our own."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802, ARG002
        """Return the end of the next batch; the start itself if there is none."""
        return self._batches.next_offset(start)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """Return the end of the topics, so that Spark's progress shows the backlog."""
        return {"at": self._batches.ends(), "skips": {}}

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Return exactly k tasks."""
        return [TaskPartition(task) for task in self._batches.plan(start, end).tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Read a task's rows, or hand the task on."""
        task: TaskInput = partition.value
        expected = to_arrow_schema(self._schema, timezone="UTC")
        if self._schema == TASK:
            yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(task)])], schema=expected)
            return
        for _, _, batch in task.batches(expected.names):
            columns = [batch.column(name) for name in expected.names]
            yield pa.RecordBatch.from_arrays(columns, schema=expected)

    def commit(self, end: dict[str, Any]) -> None:
        """Everything before `end` may be removed as far as this reader is concerned."""
        self._batches.done(end)

    def stop(self) -> None:
        """Nothing is held open."""
