"""The kind *batch* on Spark: the function is called inside the sink, without Spark's plan."""

from collections.abc import Iterator

import pyarrow as pa

from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.kinds.batch_task import run_batch_task
from penstock.engines.spark.kinds.kind import QueryParts, SourceRules, SparkKind, TaskResult
from penstock.engines.spark.kinds.task_context import add_vote, read_task
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.queries.builder import QueryContext
from penstock.engines.spark.run_layout import RunLayout


class SparkBatchKind(SparkKind):
    """A task reads its own rows; Spark sees one row per task."""

    def make_query(self, query: QueryContext) -> QueryParts:
        """Send tasks from the source to the sink."""
        return QueryParts(writer=query.write(query.read(), stamped=False))

    def run_task(
        self,
        layout: RunLayout,
        bundle: OperatorBundle,
        rows: Iterator[pa.RecordBatch],
        outputs: TaskOutputs,
    ) -> TaskResult:
        """Call the function with the rows of the task."""
        task = read_task(rows)
        return TaskResult(task=add_vote(run_batch_task(layout, bundle, task, outputs), task))


KIND = SparkBatchKind(name="batch", source=SourceRules(passes_tasks=True))
