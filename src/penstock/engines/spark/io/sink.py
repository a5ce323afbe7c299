"""The sink of an operator: tasks write segments, one commit makes a batch visible."""

import time
from collections.abc import Iterator, Sequence, Set
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.event_counts import merge
from penstock.engines.microbatch.operator_totals import add_totals
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.call_marker import clear_marks
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.publication import publish_batch
from penstock.engines.spark.io.state_versions import remove_old
from penstock.engines.spark.io.task_attempt import begin_attempt
from penstock.engines.spark.io.task_message import TaskMessage
from penstock.engines.spark.kinds.kind import TaskResult
from penstock.engines.spark.operator_bundle import OperatorBundle, load_bundle
from penstock.engines.spark.queries import failures
from penstock.engines.spark.recovery.checkpoints import OFFSETS, read_log, sync_batch
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.retention import trim
from penstock.topics.embedded.segment import SEGMENTS, Segment
from penstock.topics.embedded.topic import Topic

FORMAT = "penstock-sink"
#: Seconds between two runs of retention on a topic.
TRIM_EVERY_S = 2.0


class TopicTarget(DataSource):
    """The data source that Spark writes to, with the options run and operator."""

    @classmethod
    def name(cls) -> str:
        """The name under which Spark knows it."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> "TopicSink":  # noqa: N802, ARG002
        """Make the writer; Spark calls this for each batch."""
        return TopicSink(self.options["run"], self.options["operator"])


class TopicSink(DataSourceStreamArrowWriter):
    """Writes the rows of a frame operator, or runs the tasks of a batch operator."""

    def __init__(self, run: str, operator: str) -> None:
        self._run, self._operator = run, operator

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Run a task in its process; no reader of the pipeline sees its output yet."""
        layout = RunLayout(Path(self._run))
        bundle = load_bundle(layout.code(self._operator))
        attempt = begin_attempt(layout, bundle)
        with TaskOutputs(layout, bundle.outputs, attempt.transaction) as outputs:
            if (earlier := attempt.message) is not None:
                return earlier
            result = bundle.kind.run_task(layout, bundle, iterator, outputs)
            if (earlier := attempt.find_same()) is not None:
                return earlier
            message = TaskMessage(
                result.task, outputs.events(), outputs.close(), result.state_files, result.merged
            )
            attempt.commit(message)
            return message

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make a batch visible: its record first, then its rows in every topic it writes."""
        layout = RunLayout(Path(self._run))
        bundle = load_bundle(layout.code(self._operator))
        done = [message for message in messages if isinstance(message, TaskMessage)]
        log = BatchLog(layout.batches(self._operator))
        attempt = _build_record(layout, bundle, done, batchId)
        attempt = add_totals(attempt, log.get(batchId - 1), bundle.kind.totals)
        if bundle.kind.syncs_checkpoint:
            sync_batch(layout.checkpoint(self._operator), batchId)
        record = log.put(attempt)
        if record is not attempt:  # an earlier attempt has a record, which counts
            _remove(
                layout, messages, {s.file for segments in record.outputs.values() for s in segments}
            )
        publish_batch(bundle.operator, record, lambda name: _open_topic(layout.topic(name)))
        for name in record.outputs:
            _trim(_open_topic(layout.topic(name)))
        if record.state is not None:
            remove_old(layout.state(self._operator), log, record)
        failures.clear(layout, self._operator)  # a retried task has succeeded
        clear_marks(layout, self._operator)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """Remove the segments of a batch with a failed task.

        If no task failed, the commit did, and its segments may be in a record or in a topic
        already. They stay, and the batch runs again.
        """
        if None in messages:
            _remove(RunLayout(Path(self._run)), messages)


def _remove(
    layout: RunLayout, messages: Sequence[WriterCommitMessage | None], kept: Set[str] = frozenset()
) -> None:
    for message in messages:
        if isinstance(message, TaskMessage):
            for name, segment in message.segments.items():
                if segment.file not in kept:
                    (layout.topic(name) / SEGMENTS / segment.file).unlink(missing_ok=True)


def _build_record(
    layout: RunLayout, bundle: OperatorBundle, messages: list[TaskMessage], batch: int
) -> BatchRecord:
    name, kind = bundle.operator.name, bundle.kind
    outputs: dict[str, list[Segment]] = {}
    for message in messages:
        for topic, segment in message.segments.items():
            outputs.setdefault(topic, []).append(segment)
    tasks = [message.task for message in messages]
    plan, counted = kind.record_input(layout, name, batch, tasks)
    results = [
        TaskResult(task=m.task, state_files=m.state_files, merged=m.merged) for m in messages
    ]
    return BatchRecord(
        batch=batch,
        start=plan.start,
        end=plan.end,
        planned_at=plan.planned_at,
        committed_at=time.time(),
        tasks=counted,
        dropped=plan.dropped,
        waiting=plan.waiting,
        events=merge(message.events for message in messages),
        outputs={topic: tuple(segments) for topic, segments in outputs.items()},
        state=kind.state_after(layout, bundle.operator, results, plan),
        latest=kind.latest_times(bundle.operator, plan),
        progress=plan.progress,
        event_times=plan.event_times,
        open_inputs=plan.open_inputs,
        offset_log=read_log(layout.checkpoint(name), OFFSETS, batch),
    )


@lru_cache(maxsize=64)
def _open_topic(directory: Path) -> Topic:
    return Topic.open(directory)


_trimmed: dict[Path, float] = {}


def _trim(topic: Topic) -> None:
    now = time.monotonic()
    if now - _trimmed.get(topic.directory, -TRIM_EVERY_S) > TRIM_EVERY_S:
        _trimmed[topic.directory] = now
        trim(topic, time.time())
