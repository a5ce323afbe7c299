"""The kind *native*: a function over Spark frames whose state Spark keeps, fn(df, ...) -> df."""

from typing import TYPE_CHECKING

from penstock.pipelines.kinds.frame import FrameKind
from penstock.pipelines.kinds.kind import REPLICA_OPTIONS, Schemas, Topics

if TYPE_CHECKING:
    from penstock.pipelines.operator import Operator


class NativeKind(FrameKind):
    """Gets a frame for each topic, which need not have the same columns."""

    def arguments(self, operator: "Operator") -> tuple[str, ...]:
        """One frame for each topic, in their order."""
        return ("df",) if len(operator.reads) == 1 else operator.reads

    def check_schemas(self, operator: "Operator", inputs: Schemas, topics: Topics) -> None:
        """Inputs may differ; Spark checks the function at the start."""


KIND = NativeKind(
    name="native",
    options=(*REPLICA_OPTIONS, "queue_limit"),
    reduces_rows=True,
    uses_event_time=True,
    pauses=True,
)
