"""The kind *frame* on Spark: rows pass through Spark's plan, task by task."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame

from penstock.engines.microbatch.operator_totals import TotalsRules
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.plans import load_plan
from penstock.engines.spark.kinds.frame_task import write_frame
from penstock.engines.spark.kinds.kind import QueryParts, SparkKind, TaskResult
from penstock.engines.spark.kinds.task_context import add_vote, read_task_number
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.queries.builder import (
    QueryContext,
    check_streaming,
    find_stateful_part,
    make_size_settings,
)
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.function_call import call_frame
from penstock.pipelines.operator import Operator
from penstock.topics.schema import EVENT


class SparkFrameKind(SparkKind):
    """The tasks of the sink are those of the source, in their order."""

    def make_query(self, query: QueryContext) -> QueryParts:
        """Call the function; `_event` stays out of the JVM if the function does not use it."""
        frame = _make_frame(query)
        query.fit_topic(frame)
        writer = query.write(frame, stamped=EVENT in frame.columns)
        return QueryParts(writer=writer, settings=make_size_settings(frame.schema))

    def run_task(
        self,
        layout: RunLayout,
        bundle: OperatorBundle,
        rows: Iterator[pa.RecordBatch],
        outputs: TaskOutputs,
    ) -> TaskResult:
        """Write the rows that come out of Spark."""
        plan = load_plan(layout.plan(bundle.operator.name))
        task = plan.tasks[read_task_number() % len(plan.tasks)]
        return TaskResult(task=add_vote(write_frame(bundle, task, rows, outputs), task))


def _make_frame(query: QueryContext) -> DataFrame:
    operator = query.operator
    frame = _check_stateless(operator, call_frame(operator, query.read()))
    if EVENT in frame.columns:
        return frame
    try:
        plain = operator.function(query.read(stamps=False))
    except AnalysisException:  # it uses the column
        return frame
    return _check_stateless(operator, plain)


def _check_stateless(operator: Operator, result: object) -> DataFrame:
    frame = check_streaming(operator, result)
    if part := find_stateful_part(frame):
        raise InputError(
            operator.name,
            f"a frame operator works row by row, but this one has {part}",
            "aggregations, joins of streams and orderings need state: declare it with"
            " pipeline.native, or use pipeline.sliced",
        )
    return frame


KIND = SparkFrameKind(name="frame", totals=TotalsRules(counts_calls=False))
