"""The kind *egress* on Spark: Spark writes rows outside and keeps the only proof of it."""

from pyspark.sql.streaming.readwriter import DataStreamWriter

from penstock.engines.spark.kinds.kind import QueryParts, SourceRules, SparkKind
from penstock.engines.spark.queries.builder import QueryContext
from penstock.errors import InputError


class SparkEgressKind(SparkKind):
    """The sink is the user's; what it writes must belong to a batch that survives a power cut."""

    def make_query(self, query: QueryContext) -> QueryParts:
        """Call the function, which returns a writer."""
        writer = query.operator.function(query.read())
        if not isinstance(writer, DataStreamWriter):
            problem = f"must return a DataStreamWriter, got {type(writer).__name__}"
            hint = "return df.writeStream with its format set"
            raise InputError(query.operator.name, problem, hint)
        return QueryParts(writer=writer)


KIND = SparkEgressKind(
    name="egress", source=SourceRules(syncs_offsets=True, syncs_commits=True), has_records=False
)
