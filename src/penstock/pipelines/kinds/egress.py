"""The kind *egress*: a function that writes outside, fn(df) -> df.writeStream."""

from typing import TYPE_CHECKING

from penstock.pipelines.kinds.kind import REPLICA_OPTIONS, OperatorKind, Schemas, Topics
from penstock.pipelines.kinds.schemas import check_same_columns

if TYPE_CHECKING:
    from penstock.pipelines.operator import Operator


class EgressKind(OperatorKind):
    """Reads topics and writes none."""

    def arguments(self, operator: "Operator") -> tuple[str, ...]:  # noqa: ARG002
        """One frame with the rows of all topics."""
        return ("df",)

    def check_schemas(self, operator: "Operator", inputs: Schemas, topics: Topics) -> None:  # noqa: ARG002
        """Topics read together have the same columns."""
        check_same_columns(operator, inputs)


KIND = EgressKind(name="egress", options=REPLICA_OPTIONS, scales=False, writes_topics=False)
