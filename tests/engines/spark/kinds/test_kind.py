"""Spark runs a kind that is registered: its source, tasks and commits, by hand."""

import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from tests.pipelines.kinds.row_kind import ROW_KIND
from tests.pipelines.kinds.test_kind import pipeline_of_rows
from tests.tools.by_hand import ByHand

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.io.outputs import TaskOutputs
from penstock.engines.spark.kinds.batch import SparkBatchKind
from penstock.engines.spark.kinds.kind import (
    SourceRules,
    SparkKind,
    TaskResult,
    find_spark_kind,
    register_spark_kind,
)
from penstock.engines.spark.kinds.task_context import read_task
from penstock.engines.spark.operator_bundle import OperatorBundle
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.kinds.kind import BUILT_IN


class SparkRowKind(SparkBatchKind):
    """Rows of a task one after the other, inside the sink."""

    def run_task(
        self,
        layout: RunLayout,  # noqa: ARG002
        bundle: OperatorBundle,
        rows: Iterator[pa.RecordBatch],
        outputs: TaskOutputs,
    ) -> TaskResult:
        began, rows_in = time.time(), 0
        for _, _, batch in read_task(rows).batches():
            results = ROW_KIND.try_rows(bundle.operator, batch, None)
            outputs.write(pa.RecordBatch.from_pylist(results, outputs.schema(str(outputs.main))))
            rows_in += batch.num_rows
        record = TaskRecord(
            rows_in=rows_in,
            rows_out=outputs.rows,
            busy_s=time.time() - began,
            cpu_s=None,
            began=began,
            ended=time.time(),
        )
        return TaskResult(task=record)


SPARK_ROW_KIND = SparkRowKind(name="row", source=SourceRules(passes_tasks=True))


def test_a_new_kind_runs_at_any_number_of_replicas(tmp_path: Path) -> None:
    register_spark_kind(SPARK_ROW_KIND)
    hand = ByHand(tmp_path / "run", pipeline_of_rows(), "doubled")
    hand.put([{"n": n} for n in range(10)])
    hand.run(4, replicas=1)
    hand.run(10, replicas=3, attempts=2)
    assert [row["n"] for row in hand.out("out")] == [2 * n for n in range(10)]
    last = hand.log.last()
    assert last is not None
    assert (last.totals["rows_in"], last.totals["skipped"], len(last.tasks)) == (10, 0, 3)


@pytest.mark.parametrize("name", BUILT_IN)
def test_spark_runs_every_built_in_kind(name: str) -> None:
    assert find_spark_kind(name).name == name


def test_a_kind_without_query_and_task_cannot_be_registered() -> None:
    class EmptyKind(SparkKind):
        pass

    with pytest.raises(TypeError, match=r"make_query.*run_task"):
        register_spark_kind(EmptyKind(name="empty"))  # type: ignore[abstract]


def test_spark_refuses_a_kind_that_nothing_registered() -> None:
    with pytest.raises(InputError, match="Spark cannot run kind 'batsh'"):
        find_spark_kind("batsh")
