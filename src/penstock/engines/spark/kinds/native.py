"""The kind *native* on Spark: Spark keeps the state; a change of replicas stops the query."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.plans import BatchPlan
from penstock.engines.spark.kinds.frame_task import write_native
from penstock.engines.spark.kinds.kind import QueryParts, SourceRules, SparkKind, TaskResult
from penstock.engines.spark.kinds.task_context import read_batch_number
from penstock.engines.spark.native_state.repartition import native_settings
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.queries.builder import (
    QueryContext,
    check_streaming,
    find_stateful_part,
    make_size_settings,
)
from penstock.engines.spark.recovery.checkpoints import read_last_batch, read_planned_batch
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.function_call import call_frame
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT


class SparkNativeKind(SparkKind):
    """Spark's offset log has the input of a batch; Spark plans its tasks."""

    def make_query(self, query: QueryContext) -> QueryParts:
        """Call the function with a frame for each topic."""
        operator = query.operator
        inputs = [query.read(topic=topic) for topic in operator.reads]
        frame = check_streaming(operator, call_frame(operator, *inputs))
        if not find_stateful_part(frame):
            hint = "declare it with pipeline.operator, which changes its replicas without a stop"
            raise InputError(operator.name, "has no state that Spark would keep", hint)
        query.fit_topic(frame)
        settings = make_size_settings(frame.schema) | native_settings(query.partitions)
        return QueryParts(
            writer=query.write(frame, stamped=EVENT in frame.columns), settings=settings
        )

    def run_task(
        self,
        layout: RunLayout,
        bundle: OperatorBundle,
        rows: Iterator[pa.RecordBatch],
        outputs: TaskOutputs,
    ) -> TaskResult:
        """Write the output rows of Spark's state."""
        stamp = read_stamp_us(layout, bundle.operator.name, read_batch_number())
        return TaskResult(task=write_native(bundle, stamp, rows, outputs))

    def planned_input(self, layout: RunLayout, operator: str, batch: int) -> BatchPlan:
        """Read Spark's offset log."""
        return read_plan(layout, operator, batch)

    def record_input(
        self, layout: RunLayout, operator: str, batch: int, tasks: Sequence[TaskRecord]
    ) -> tuple[BatchPlan, tuple[TaskRecord, ...]]:
        """Share the rows of a batch among its tasks."""
        plan = read_plan(layout, operator, batch)
        return plan, share_rows(tasks, plan)

    def watermark_us(
        self,
        layout: RunLayout,
        operator: str,
        record: BatchRecord | None,  # noqa: ARG002
    ) -> int | None:
        """Read the watermark from Spark's log."""
        planned = read_last_batch(layout.checkpoint(operator))
        return planned.watermark if planned is not None else None


KIND = SparkNativeKind(
    name="native",
    source=SourceRules(needs_whole_batches=True, saves_plan=False, syncs_commits=True),
    has_spark_state=True,
    syncs_checkpoint=True,
)


def read_plan(layout: RunLayout, operator: str, batch: int) -> BatchPlan:
    """Return the input of a batch; Spark plans its tasks."""
    checkpoint = layout.checkpoint(operator)
    planned, before = (
        read_planned_batch(checkpoint, batch),
        read_planned_batch(checkpoint, batch - 1),
    )
    assert planned is not None  # it is planned before it runs
    ends = before.ends if before else {}
    start = {
        name: ends[name] if name in ends else _read_first(layout, name) for name in planned.ends
    }
    return BatchPlan(start=start, end=planned.ends, planned_at=planned.planned_at, tasks=())


def share_rows(tasks: Sequence[TaskRecord], plan: BatchPlan) -> tuple[TaskRecord, ...]:
    """Divide the rows of a batch equally among its tasks: Spark does not report their shares."""
    rows = sum(plan.end[name] - start for name, start in plan.start.items())
    share, rest = divmod(rows, len(tasks)) if tasks else (0, 0)
    return tuple(replace(task, rows_in=share + (index < rest)) for index, task in enumerate(tasks))


def read_stamp_us(layout: RunLayout, operator: str, batch: int) -> int:
    """Return the due time of the last rows of a batch, which its output rows get."""
    plan = read_plan(layout, operator, batch)
    stamps = [
        rows[EVENT].cast("int64")[0].as_py()
        for name, end in plan.end.items()
        if end > plan.start[name]
        for rows in Topic.open(layout.topic(name)).read(end - 1, end, [EVENT])
    ]
    return max(stamps, default=int(plan.planned_at * 1e6))


def _read_first(layout: RunLayout, topic: str) -> int:
    return Topic.open(layout.topic(topic)).first
