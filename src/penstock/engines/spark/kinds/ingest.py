"""The kind *ingest* on Spark: rows of a stream that Penstock does not plan."""

import time
from collections.abc import Iterator, Sequence

import pyarrow as pa
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.plans import BatchPlan
from penstock.engines.spark.kinds.frame_task import write_ingest
from penstock.engines.spark.kinds.kind import QueryParts, SparkKind, TaskResult
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.queries.builder import QueryContext, check_streaming, make_size_settings
from penstock.engines.spark.queries.query_status import is_working
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.schema import EVENT


class SparkIngestKind(SparkKind):
    """Spark's checkpoint alone knows how far the source was read."""

    def make_query(self, query: QueryContext) -> QueryParts:
        """Call the function with the session."""
        frame = check_streaming(query.operator, query.operator.function(query.spark))
        query.fit_topic(frame)
        writer = query.write(frame, stamped=EVENT in frame.columns)
        return QueryParts(writer=writer, settings=make_size_settings(frame.schema))

    def run_task(
        self,
        layout: RunLayout,  # noqa: ARG002
        bundle: OperatorBundle,
        rows: Iterator[pa.RecordBatch],
        outputs: TaskOutputs,
    ) -> TaskResult:
        """Write the rows with their event times."""
        return TaskResult(task=write_ingest(bundle, rows, outputs))

    def planned_input(self, layout: RunLayout, operator: str, batch: int) -> BatchPlan:  # noqa: ARG002
        """No topic is read."""
        return BatchPlan(start={}, end={}, planned_at=time.time(), tasks=())

    def record_input(
        self,
        layout: RunLayout,  # noqa: ARG002
        operator: str,  # noqa: ARG002
        batch: int,  # noqa: ARG002
        tasks: Sequence[TaskRecord],
    ) -> tuple[BatchPlan, tuple[TaskRecord, ...]]:
        """A batch begins with its first task."""
        began = min((task.began for task in tasks), default=time.time())
        return BatchPlan(start={}, end={}, planned_at=began, tasks=()), tuple(tasks)

    def is_quiet(self, query: StreamingQuery) -> bool:
        """Spark polls the source all the time; only a batch with rows counts."""
        return not is_working(query)


KIND = SparkIngestKind(name="ingest", reads_outside=True, syncs_checkpoint=True)
