"""The kind *ingest*: a function that reads from outside, fn(spark) -> streaming frame."""

from typing import TYPE_CHECKING

from penstock.pipelines.kinds.kind import OperatorKind, Schemas, Topics
from penstock.pipelines.kinds.schemas import check_event_time

if TYPE_CHECKING:
    from penstock.pipelines.operator import Operator


class IngestKind(OperatorKind):
    """Fills a topic; its source and its parallelism belong to Spark."""

    def arguments(self, operator: "Operator") -> tuple[str, ...]:  # noqa: ARG002
        """The Spark session."""
        return ("spark",)

    def check_schemas(self, operator: "Operator", inputs: Schemas, topics: Topics) -> None:  # noqa: ARG002
        """The column of event times is a timestamp, as far as columns are declared."""
        if operator.options.time is not None and operator.output_schema is not None:
            check_event_time(operator.options.time, operator.output_schema)


KIND = IngestKind(name="ingest", options=("max_replicas", "time"), scales=False, reads_topics=False)
