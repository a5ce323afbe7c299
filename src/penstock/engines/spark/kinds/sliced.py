"""The kind *sliced* on Spark: a batch operator whose tasks own slices of its state."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.engines.microbatch.operator_totals import TotalsRules
from penstock.engines.microbatch.slice_assignment import build_version
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.io.plans import BatchPlan
from penstock.engines.spark.io.state_versions import find_record_before
from penstock.engines.spark.kinds.batch import SparkBatchKind
from penstock.engines.spark.kinds.kind import SourceRules, TaskResult
from penstock.engines.spark.kinds.sliced_task import run_sliced_task
from penstock.engines.spark.kinds.task_context import add_vote, read_task
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import PenstockError
from penstock.pipelines.kinds.sliced import slicing_of
from penstock.pipelines.operator import Operator
from penstock.state.version import Version


class SparkSlicedKind(SparkBatchKind):
    """Slices move between tasks from one batch to the next; the query never stops."""

    def run_task(
        self,
        layout: RunLayout,
        bundle: OperatorBundle,
        rows: Iterator[pa.RecordBatch],
        outputs: TaskOutputs,
    ) -> TaskResult:
        """Call the function for each slice of the task."""
        task = read_task(rows)
        result = run_sliced_task(layout, bundle, task, outputs)
        return replace(result, task=add_vote(result.task, task))

    def state_after(
        self, layout: RunLayout, operator: Operator, results: Sequence[TaskResult], plan: BatchPlan
    ) -> Version:
        """Add the files of all tasks to the version that the batch began with."""
        before = find_record_before(BatchLog(layout.batches(operator.name)), plan.start)
        assignment = plan.tasks[0].assignment
        if assignment is None:
            raise PenstockError(f"{operator.name}: a batch was planned without its slices")
        state_files = [file for result in results for file in result.state_files]
        merged = [change for result in results for change in result.merged]
        return build_version(
            before, self.slices(operator), state_files, merged, assignment.watermark
        )

    def latest_times(self, operator: Operator, plan: BatchPlan) -> dict[str, int | None]:
        """Every input with a key advances the watermark."""
        slicing = slicing_of(operator)
        return {topic: plan.progress[topic][slicing.time].complete for topic in slicing.keys}

    def slices(self, operator: Operator) -> int:
        """Return the number that was declared."""
        return slicing_of(operator).slices

    def config_fields(self, operator: Operator) -> Mapping[str, Any]:
        """The source assigns slices and knows the watermark."""
        slicing = slicing_of(operator)
        return {
            "slices": slicing.slices,
            "keyed": tuple(slicing.keys),
            "delay_us": slicing.delay_us,
        }


KIND = SparkSlicedKind(
    name="sliced",
    source=SourceRules(passes_tasks=True),
    totals=TotalsRules(takes_whole_slices=True),
)
