"""The sink of an operator: tasks write segments, one commit shows all of a batch at once."""

import pickle
import time
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSource,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.event_counts import Events, merge
from penstock.engines.microbatch.operator_totals import with_totals
from penstock.engines.microbatch.slice_assignment import version_after
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.call_marker import clear_marks
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.plans import BatchPlan, TaskInput, load_plan
from penstock.engines.spark.io.publication import publish_batch
from penstock.engines.spark.io.state_versions import record_before, remove_old
from penstock.engines.spark.kinds import batch_task as fused
from penstock.engines.spark.kinds import frame_task as framing
from penstock.engines.spark.kinds import native_offsets as native
from penstock.engines.spark.kinds import sliced_task as slices
from penstock.engines.spark.operator_bundle import OperatorBundle, load_bundle
from penstock.engines.spark.queries import failures
from penstock.engines.spark.recovery import checkpoints
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import PenstockError
from penstock.state.state_files import StateFile
from penstock.state.version import FileMerge, Version
from penstock.topics.embedded.retention import trim
from penstock.topics.embedded.segment import SEGMENTS, Segment
from penstock.topics.embedded.topic import Topic

FORMAT = "penstock-sink"
#: Seconds between two looks for what may be removed from a topic.
TRIM_EVERY_S = 2.0


@dataclass
class TaskMessage(WriterCommitMessage):
    """What a task tells when it has written its segments."""

    task: TaskRecord
    events: Events = ()
    segments: dict[str, Segment] = field(default_factory=dict)
    #: Of a task with state.
    runs: tuple[StateFile, ...] = ()
    merged: tuple[FileMerge, ...] = ()


class TopicTarget(DataSource):
    """What Spark writes to for an operator, with options run and operator."""

    @classmethod
    def name(cls) -> str:
        """The name under which Spark knows it."""
        return FORMAT

    def streamWriter(self, schema: StructType, overwrite: bool) -> "TopicSink":  # noqa: N802, ARG002
        """Make the writer; Spark does so for each batch."""
        return TopicSink(self.options["run"], self.options["operator"])


class TopicSink(DataSourceStreamArrowWriter):
    """Writes the rows of a frame operator, or does the work of a batch operator."""

    def __init__(self, run: str, operator: str) -> None:
        self._run, self._operator = run, operator

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Do a task's work in its own process; nothing of it is visible yet."""
        layout = RunLayout(Path(self._run))
        bundle = load_bundle(layout.code(self._operator))
        with TaskOutputs(layout, bundle.outputs) as outputs:
            if bundle.operator.kind == "sliced":
                done = slices.run_sliced_task(layout, bundle, _task(iterator), outputs)
                events, segments = outputs.events(), outputs.close()
                return TaskMessage(done.task, events, segments, done.runs, done.merged)
            if bundle.operator.kind == "batch":
                task = fused.run_batch_task(layout, bundle, _task(iterator), outputs)
            elif bundle.operator.kind == "frame":
                # tasks keep the order of the source's partitions
                plan = load_plan(layout.plan(self._operator))
                mine = plan.tasks[_task_number() % len(plan.tasks)]
                task = framing.write(bundle, mine, iterator, outputs)
            elif bundle.operator.kind == "native":
                stamp_us = native.stamp_us(layout, self._operator, _batch_number())
                task = framing.write_native(bundle, stamp_us, iterator, outputs)
            else:
                task = framing.write_ingest(bundle, iterator, outputs)
            return TaskMessage(task, outputs.events(), outputs.close())

    def commit(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        """Make a batch visible: its record first, then its rows in every topic it writes."""
        layout = RunLayout(Path(self._run))
        bundle = load_bundle(layout.code(self._operator))
        told = [message for message in messages if isinstance(message, TaskMessage)]
        log = BatchLog(layout.batches(self._operator))
        mine = _record(layout, bundle, told, batchId)
        mine = with_totals(mine, log.get(batchId - 1), bundle.operator.kind)
        if bundle.operator.kind in ("ingest", "native"):  # of the others a record tells all
            checkpoints.sync_batch(layout.checkpoint(self._operator), batchId)
        record = log.put(mine)
        if record is not mine:  # an earlier attempt came so far, and its rows count
            _remove(layout, messages, {s.file for each in record.outputs.values() for s in each})
        publish_batch(bundle.operator, record, lambda name: _topic(layout.topic(name)))
        for name in record.outputs:
            _trim(_topic(layout.topic(name)))
        if record.state is not None:
            remove_old(layout.state(self._operator), log, record)
        failures.clear(layout, self._operator)  # a task that failed went well the next time
        clear_marks(layout, self._operator)

    def abort(self, messages: Sequence[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803, ARG002
        """Take away what the other tasks wrote if one failed.

        If none did, it is the commit that died, and nobody knows how far it came: its segments
        may be in a record, or in a topic already. The batch will be run again.
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


def _record(
    layout: RunLayout, bundle: OperatorBundle, told: list[TaskMessage], batch: int
) -> BatchRecord:
    name = bundle.operator.name
    outputs: dict[str, list[Segment]] = {}
    for message in told:
        for topic, segment in message.segments.items():
            outputs.setdefault(topic, []).append(segment)
    tasks = tuple(message.task for message in told)
    now = time.time()
    if bundle.operator.kind == "ingest":
        began = min((task.began for task in tasks), default=now)
        plan = BatchPlan(start={}, end={}, planned_at=began, tasks=())
    elif bundle.operator.kind == "native":
        plan = native.plan_of(layout, name, batch)
        tasks = native.shared(tasks, plan)
    else:
        plan = load_plan(layout.plan(name))
        if len(plan.tasks) != len(told):
            problem = f"{name}: {len(plan.tasks)} replicas became {len(told)} tasks"
            raise PenstockError(
                f"{problem}\nhint: a frame operator keeps its partitions: no repartition, coalesce,"
                " limit or aggregation in it"
            )
    return BatchRecord(
        batch=batch,
        start=plan.start,
        end=plan.end,
        planned_at=plan.planned_at,
        committed_at=now,
        tasks=tasks,
        dropped=plan.dropped,
        waiting=plan.waiting,
        events=merge(message.events for message in told),
        outputs={topic: tuple(segments) for topic, segments in outputs.items()},
        state=_state(layout, bundle, told, plan),
        latest=_latest(bundle, plan),
        progress=plan.progress,
        event_times=plan.event_times,
        open_inputs=plan.open_inputs,
        offset_log=checkpoints.read_log(layout.checkpoint(name), checkpoints.OFFSETS, batch),
    )


def _state(
    layout: RunLayout, bundle: OperatorBundle, told: list[TaskMessage], plan: BatchPlan
) -> Version | None:
    """What a batch leaves in an operator's memory."""
    slicing, name = bundle.operator.slicing, bundle.operator.name
    if slicing is None:
        return None
    before = record_before(BatchLog(layout.batches(name)), plan.start)
    assignment = plan.tasks[0].assignment
    assert assignment is not None
    runs = [run for message in told for run in message.runs]
    merged = [change for message in told for change in message.merged]
    return version_after(before, slicing.slices, runs, merged, assignment.watermark)


def _latest(bundle: OperatorBundle, plan: BatchPlan) -> dict[str, int | None]:
    """The latest event time of each input that advances the watermark."""
    slicing = bundle.operator.slicing
    if slicing is None:
        return {}
    return {topic: plan.progress[topic][slicing.time].complete for topic in slicing.keys}


def _task(rows: Iterator[pa.RecordBatch]) -> TaskInput:
    """The one row that says what to do."""
    (row,) = (row for batch in rows for row in batch.column(0).to_pylist())
    task = pickle.loads(row)
    assert isinstance(task, TaskInput)
    return task


def _batch_number() -> int:
    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context else None
    assert number is not None
    return int(number)


def _task_number() -> int:
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


@lru_cache(maxsize=64)
def _topic(directory: Path) -> Topic:
    return Topic.open(directory)


_trimmed: dict[Path, float] = {}


def _trim(topic: Topic) -> None:
    now = time.monotonic()
    if now - _trimmed.get(topic.directory, -TRIM_EVERY_S) > TRIM_EVERY_S:
        _trimmed[topic.directory] = now
        trim(topic, time.time())
