"""A kind of operator for tests: a function over one row, fn(row) -> row."""

from typing import Any

import pyarrow as pa

from penstock.pipelines.kinds.kind import REPLICA_OPTIONS, OperatorKind, Schemas, Topics
from penstock.pipelines.kinds.schemas import check_output_declared
from penstock.pipelines.operator import Operator
from penstock.topics.schema import EVENT


class RowKind(OperatorKind):
    """Calls the function for each row; a row keeps its `_event`."""

    def arguments(self, operator: Operator) -> tuple[str, ...]:  # noqa: ARG002
        return ("row",)

    def check_schemas(self, operator: Operator, inputs: Schemas, topics: Topics) -> None:  # noqa: ARG002
        check_output_declared(operator)

    def check_try_out(self, operator: Operator) -> None:
        """Every row operator can be tried."""

    def try_rows(
        self, operator: Operator, batch: pa.RecordBatch, spark: object
    ) -> list[dict[str, Any]]:
        del spark
        return [{**operator.function(row), EVENT: row[EVENT]} for row in batch.to_pylist()]


ROW_KIND = RowKind(name="row", options=REPLICA_OPTIONS)
