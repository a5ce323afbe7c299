"""The kind *frame*: a stateless function over Spark frames, fn(df) -> df."""

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
from penstock.pipelines.kinds.schemas import check_same_columns

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.pipelines.operator import Operator


class FrameKind(OperatorKind):
    """Runs as part of Spark's plan; Spark shows its columns at the start only."""

    def arguments(self, operator: "Operator") -> tuple[str, ...]:  # noqa: ARG002
        """One frame with the rows of all topics."""
        return ("df",)

    def check_schemas(self, operator: "Operator", inputs: Schemas, topics: Topics) -> None:  # noqa: ARG002
        """Topics read together have the same columns."""
        check_same_columns(operator, inputs)

    def check_try_out(self, operator: "Operator") -> None:
        """Every frame operator can be tried."""

    def try_rows(
        self, operator: "Operator", batch: pa.RecordBatch, spark: "SparkSession | None"
    ) -> list[Row]:
        """Call the function with a frame of the rows."""
        # running processes do not load the try-out
        from penstock.pipelines.try_out import try_frame  # noqa: PLC0415

        return try_frame(operator, batch, spark)


KIND = FrameKind(name="frame", options=(*REPLICA_OPTIONS, *QUEUE_OPTIONS))
