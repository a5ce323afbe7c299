"""An operator: a function, the topics that it reads and writes, and how it is run."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from penstock.pipelines.kinds.kind import find_kind
from penstock.pipelines.source_location import place_of
from penstock.pipelines.stateful.slice_options import Slicing
from penstock.pipelines.topic_declaration import DeclaredTopic, errors_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OnError = Literal["stop", "dead-letter"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How an operator is run."""

    #: The fewest replicas that a policy may give it.
    min_replicas: int = 1
    #: The most replicas that a policy may give it.
    max_replicas: int = 8
    #: Replicas at the start.
    replicas: int = 1
    #: Which replica gets a record: "even", "load" (the least busy one) or "key:COLUMN".
    grouping: str = "even"
    #: A record that is older when its turn comes is dropped.
    timeout_s: float | None = None
    #: If more records wait, the rest is dropped.
    queue_size: int | None = None
    #: The topic that dropped records go to; without one they are only counted.
    dropped_to: str | None = None
    #: If more records wait, the operators that fill the queue are paused.
    queue_limit: int | None = None
    #: Opens what the function needs once in each process, such as a model or a connection.
    resource: Callable[[], Any] | None = None
    #: Most rows of one call of the function; None: no limit.
    chunk_rows: int | None = None
    #: Seconds that one call of the function may take; after that its process is ended.
    call_timeout_s: float | None = None
    #: Rows that the function fails on: "stop" the run, or "dead-letter" them to NAME-errors.
    on_error: OnError = "stop"
    #: Inputs of which a batch takes whole commits only, at least one.
    whole_commits: tuple[str, ...] = ()
    #: Of an ingest: the column with the event time of a row; None: the time of its arrival.
    time: str | None = None
    #: Whether it may run in one query with its neighbours, if the run has chains.
    chain: bool = True

    def within_bounds(self, replicas: int) -> int:
        """Return the nearest number of replicas that is allowed."""
        return min(max(replicas, self.min_replicas), self.max_replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """A named step of a pipeline. Calling it calls the function."""

    #: The name of its function, unless another was given.
    name: str
    #: Its kind: frame, batch, sliced, native, ingest or egress.
    kind: str
    #: The function that was decorated.
    function: Callable[..., Any]
    #: The topics that it reads.
    reads: tuple[str, ...] = ()
    #: The topic that it writes, the main one of several; None for an egress.
    writes: str | None = None
    #: Further topics that its function returns rows for.
    extra_outputs: tuple[str, ...] = ()
    options: Options = Options()
    #: How the state of a sliced operator is cut; None for all others.
    slicing: Slicing | None = None
    #: Its name at an earlier start of the run, if it was renamed.
    was: str | None = None
    #: If it is a chain: its operators, in order. The first gives it its name, function and inputs,
    #: the last its outputs.
    members: tuple["Operator", ...] = ()
    #: The declared topics of its pipeline; more may be declared later.
    topics: Mapping[str, DeclaredTopic] = field(default_factory=dict, repr=False, compare=False)

    def __call__(self, *given: Any) -> Any:
        return self.function(*given)

    @property
    def scales(self) -> bool:
        """Whether the loop decides on its replicas; Spark decides on the others."""
        return find_kind(self.kind).scales

    @property
    def head(self) -> "Operator":
        """The first operator of a chain; any other operator itself."""
        return self.members[0] if self.members else self

    @property
    def outputs(self) -> tuple[str, ...]:
        """The topics that its function returns rows for; the first is the main one."""
        return (self.writes, *self.extra_outputs) if self.writes else ()

    @property
    def fills(self) -> tuple[str, ...]:
        """Every topic that it writes: for output, dropped rows, failed rows, late rows."""
        others = (self.options.dropped_to, *self.error_topics, self.late_to)
        return (*self.outputs, *(topic for topic in others if topic))

    @property
    def error_topics(self) -> tuple[str, ...]:
        """The topics for rows on which its function, or a member of its chain, fails."""
        operators = self.members or (self,)
        return tuple(
            errors_topic(operator.name)
            for operator in operators
            if operator.options.on_error == "dead-letter"
        )

    @property
    def late_to(self) -> str | None:
        """The topic that gets rows which come after the watermark, if there is one."""
        return find_kind(self.kind).late_to(self)

    @property
    def output_schema(self) -> pa.Schema | None:
        """Columns of its main output, without `_event`; None if they are not declared."""
        return self._schema(self.writes) if self.writes else None

    @property
    def output_schemas(self) -> dict[str, pa.Schema]:
        """Columns of each topic of its outputs that is declared, without `_event`."""
        known = {topic: self._schema(topic) for topic in self.outputs}
        return {topic: schema for topic, schema in known.items() if schema is not None}

    @property
    def input_schema(self) -> pa.Schema | None:
        """Columns of its input, without `_event`; None if they are not declared."""
        known = (self._schema(topic) for topic in self.reads)
        return next((schema for schema in known if schema is not None), None)

    @property
    def where(self) -> str:
        """File and line of the function, for errors."""
        return place_of(self.function)

    def try_rows(
        self,
        rows: Sequence[Mapping[str, Any]] | pa.Table,
        schema: str | pa.Schema | None = None,
        spark: "SparkSession | None" = None,
    ) -> list[dict[str, Any]]:
        """Run it on a few rows, without a stream; the default schema is the declared one.

        A batch operator needs no Spark. Rows without `_event` all get the same one, and the
        result leaves it out. With several output topics, the result is that of the main one.
        """
        return self.try_outputs(rows, schema, spark).get(self.writes or "", [])

    def try_outputs(
        self,
        rows: Sequence[Mapping[str, Any]] | pa.Table,
        schema: str | pa.Schema | None = None,
        spark: "SparkSession | None" = None,
    ) -> dict[str, list[dict[str, Any]]]:
        """Run it on a few rows, as `try_rows`; return the rows of every topic that it writes."""
        # running processes do not load the try-out
        from penstock.pipelines.try_out import try_outputs  # noqa: PLC0415

        return try_outputs(self, rows, schema, spark)

    def _schema(self, topic: str) -> pa.Schema | None:
        declared = self.topics.get(topic)
        return declared.schema if declared else None
