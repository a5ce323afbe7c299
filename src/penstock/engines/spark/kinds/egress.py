"""The kind *egress* on Spark: rows go outside, and only Spark's checkpoint proves it."""

from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.kinds.kind import QueryParts, SourceRules, SparkKind, TaskResult
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.queries.builder import QueryContext
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError, PenstockError


class SparkEgressKind(SparkKind):
    """Rows written outside must belong to a batch that survives a power failure."""

    def make_query(self, query: QueryContext) -> QueryParts:
        """Call the function, which returns a writer."""
        writer = query.operator.function(query.read())
        if not isinstance(writer, DataStreamWriter):
            problem = f"must return a DataStreamWriter, got {type(writer).__name__}"
            hint = "return df.writeStream with its format set"
            raise InputError(query.operator.name, problem, hint)
        return QueryParts(writer=writer)

    def run_task(
        self,
        layout: RunLayout,  # noqa: ARG002
        bundle: OperatorBundle,
        rows: Iterator[pa.RecordBatch],  # noqa: ARG002
        outputs: TaskOutputs,  # noqa: ARG002
    ) -> TaskResult:
        """Refuse: the user's writer runs the tasks, not the sink of a topic."""
        raise PenstockError(f"{bundle.operator.name}: an egress has no task inside the sink")


KIND = SparkEgressKind(
    name="egress",
    source=SourceRules(times_batches=True, syncs_offsets=True, syncs_commits=True),
    has_records=False,
)
