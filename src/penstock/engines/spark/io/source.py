"""The streaming source of an operator: k partitions per batch, with rows that k replicas carry.

It runs in a separate process beside the driver, and Spark calls it before every batch. A frame
operator gets the rows themselves. A batch operator gets one row per task that names its rows: the
function is called inside the sink, and no data row passes the JVM.
"""

import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit
from pyspark.sql.types import BinaryType, StructField, StructType

from penstock.engines.spark.io.batch_begin import IDLE_S
from penstock.engines.spark.io.batch_planner import BatchPlanner
from penstock.engines.spark.io.plans import TaskInput
from penstock.engines.spark.operator_config import OperatorConfig
from penstock.engines.spark.run_layout import RunLayout
from penstock.files.directory_watch import DirectoryWatch
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import without_event

FORMAT = "penstock-source"
#: The option that leaves `_event` out for a function that does not use it.
STAMPS = "stamps"
#: The option that names the topic to read, for an operator with one frame per topic.
TOPIC = "topic"
#: The only column of a row that holds a pickled task.
TASK = StructType([StructField("task", BinaryType())])


class TopicSource(DataSource):
    """The data source that Spark reads, with the options run and operator.

    Each query registers it separately. When the process of a source starts, Spark changes the
    environment of the registration without a lock, while tasks of other queries with the same
    registration are being serialised.
    """

    @classmethod
    def name(cls) -> str:
        """The name under which Spark knows it."""
        return FORMAT

    def schema(self) -> StructType:
        """Rows of the topic, or one row per task."""
        layout, config = _load_job(self.options)
        if config.source.passes_tasks:
            return TASK
        rows = Topic.open(layout.topic(self.options.get(TOPIC, config.reads[0]))).schema
        is_plain = self.options.get(STAMPS) == "no"
        return from_arrow_schema(without_event(rows) if is_plain else rows, False)

    def streamReader(self, schema: StructType) -> "TopicReader":  # noqa: N802
        """Make the reader; Spark calls this in the source's process and in each task."""
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
    """Reads the topics of an operator, batch by batch."""

    def __init__(self, run: str, operator: str, schema: StructType, topic: str | None) -> None:
        self._run, self._operator, self._schema, self._topic = run, operator, schema, topic
        self._planner: BatchPlanner | None = None
        self._watch: DirectoryWatch | None = None

    @property
    def _batches(self) -> BatchPlanner:
        # made on first use: a task's copy of this object must not open topics and logs
        if self._planner is None:
            self._planner = BatchPlanner(RunLayout(Path(self._run)), self._operator, self._topic)
        return self._planner

    @property
    def _may_wait(self) -> bool:
        # Spark asks the sources of one query in turn: one of several must not wait
        return self._topic is None and self._batches.config.waits_for_rows

    @property
    def _wake_up(self) -> DirectoryWatch:
        """Notices commits to the topics, and commands."""
        if self._watch is None:
            commands = self._batches.layout.order(self._operator).parent
            topics = (topic.commits_directory for topic in self._batches.topics.values())
            self._watch = DirectoryWatch([*topics, commands])
        return self._watch

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        """Begin with the oldest row."""
        return {"at": self._batches.first(), "skips": {}}

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Return no limit: the planner limits batches."""
        return ReadAllAvailable()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802, ARG002
        """Return the end of the next batch as soon as there is one; the start after a while."""
        planner, deadline = self._batches, time.monotonic() + IDLE_S
        while True:
            end = planner.next_offset(start)
            wait_s = min(planner.batch_begin.wait_s, deadline - time.monotonic())
            if end != start or wait_s <= 0 or not self._may_wait:
                return end
            self._wake_up.wait(wait_s)

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
        """Release the rows before `end`: this reader needs them no more."""
        self._batches.release(end)

    def stop(self) -> None:
        """Stop watching."""
        if self._watch is not None:
            self._watch.close()
