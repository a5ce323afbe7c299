"""The kind *batch*: a function over Arrow batches, fn(batch) -> batch or fn(batch, resource)."""

from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.pipelines.kinds.kind import (
    QUEUE_OPTIONS,
    REPLICA_OPTIONS,
    OperatorKind,
    Row,
    Schemas,
    Topics,
)
from penstock.pipelines.kinds.schemas import check_output_declared, check_same_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipelines.operator import Operator

CALL_OPTIONS = ("resource", "chunk_rows", "call_timeout_s", "on_error", "whole_commits", "chain")


class BatchKind(OperatorKind):
    """Runs without Spark's plan: the function is called inside the sink."""

    def arguments(self, operator: "Operator") -> tuple[str, ...]:
        """A batch of rows, and the resource if there is one."""
        return ("batch", "resource") if operator.options.resource else ("batch",)

    def check_schemas(self, operator: "Operator", inputs: Schemas, topics: Topics) -> None:  # noqa: ARG002
        """The output is declared, and topics read together have the same columns."""
        check_output_declared(operator)
        check_same_columns(operator, inputs)

    def check_try_out(self, operator: "Operator") -> None:
        """Every batch operator can be tried."""

    def try_outputs(
        self,
        operator: "Operator",
        batch: pa.RecordBatch,
        spark: "SparkSession | None",  # noqa: ARG002
    ) -> dict[str, list[Row]]:
        """Call the function, chunk by chunk, without Spark."""
        # running processes do not load the try-out
        from penstock.pipelines.try_out import try_batch  # noqa: PLC0415

        return try_batch(operator, batch)


KIND = BatchKind(
    name="batch",
    options=(*REPLICA_OPTIONS, *QUEUE_OPTIONS, *CALL_OPTIONS),
    writes_several=True,
    leads_chains=True,
    follows_in_chains=True,
)
