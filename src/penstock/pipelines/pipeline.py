"""A pipeline: topics, and operators between them."""

from collections.abc import Callable, Iterable
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.core.topology import Topology
from penstock.errors import InputError
from penstock.pipelines import validation
from penstock.pipelines.host_declaration import Hosts
from penstock.pipelines.kinds.kind import find_kind
from penstock.pipelines.operator_decorators import OperatorDecorators
from penstock.pipelines.topic_declaration import (
    ERRORS_SCHEMA,
    DeclaredTopic,
    Feed,
    MakeRows,
)
from penstock.topics.embedded.retention import parse_retention
from penstock.topics.kafka.cluster import KafkaCluster, make_cluster
from penstock.topics.schema import parse_schema
from penstock.workloads.pattern import ArrivalName

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Unpack

    from pyspark.sql import SparkSession

    from penstock.api.options import RunOptions
    from penstock.api.run_handle import Run
    from penstock.core.policy import Policy
    from penstock.workloads.workload import Workload

Make = TypeVar("Make", bound=MakeRows)


class Pipeline(OperatorDecorators):
    """A directed acyclic graph of operators joined by topics, declared piece by piece.

    The order of declarations does not matter: `check` looks at the whole pipeline.

    >>> import pyarrow as pa
    >>> import pyarrow.compute as pc
    >>> from penstock import Pipeline
    >>> pipeline = Pipeline("orders", objective_s=2, summary="which orders are large?")
    >>> pipeline.topic("orders", "id long, amount double")
    >>> pipeline.topic("large", "id long, amount double")
    >>> @pipeline.produces("orders")
    ... def orders(first_id, due):
    ...     ids = range(first_id, first_id + len(due))
    ...     return pa.table({"id": ids, "amount": [float(i % 200) for i in ids]})
    >>> @pipeline.batches(reads="orders", writes="large", max_replicas=4)
    ... def large(batch):
    ...     return batch.filter(pc.field("amount") > 100)
    >>> large.try_rows([{"id": 1, "amount": 7.0}, {"id": 2, "amount": 107.0}])
    [{'id': 2, 'amount': 107.0}]
    >>> pipeline.check().order
    ('large',)
    """

    def __init__(
        self,
        name: str,
        objective_s: float | None = None,
        summary: str = "",
        *,
        idle_s: float | None = None,
        hosts: Hosts | None = None,
        chain: bool = True,
        topics: str | None = None,
        topics_properties: "str | Path | None" = None,
    ) -> None:
        """`topics` is where the rows between operators are: None, in the directory of a run.

        Or in Kafka, `kafka://host:port/prefix`; `topics_properties` is a file with settings of
        its clients, such as passwords.
        """
        super().__init__()
        validation.check_name("pipeline", name)
        #: The name of the pipeline, which names its runs.
        self.name = name
        #: Latency that its runs should stay below, in seconds.
        self.objective_s = objective_s
        #: One sentence for lists of pipelines.
        self.summary = summary
        #: Seconds without rows after which an input no longer holds watermarks; None: never.
        self.idle_s = idle_s
        #: Hosts that carry the slices of its operators; None: each operator scales by itself.
        self.hosts = hosts
        #: Whether neighbouring operators may run in one query, if the run has chains.
        self.chain = chain
        #: Where the rows of its topics are in Kafka; None: in the directory of a run.
        self.cluster = make_cluster(topics, topics_properties)
        #: The pipeline that this one was made from; itself if it was declared.
        self.origin: Pipeline = self
        self.feeds: dict[str, Feed] = {}

    def topic(
        self,
        name: str,
        schema: str,
        keep: str = "read",
        *,
        external: bool = False,
        was: str | None = None,
    ) -> None:
        """Declare a topic with its columns, such as "id long, taken timestamp, png binary".

        `keep` is how long records stay: "read" until all operators have read them, or a time or
        a size, such as "10 minutes" and "2 GB". With `external=True` another process fills it,
        such as `penstock produce`. `was` is its name at an earlier start: a resumed run keeps
        its rows.
        """
        validation.check_name("topic", name)
        if name in self.declared:
            raise InputError(f"topics.{name}", "is declared twice")
        try:
            columns = validation.check_columns(parse_schema(schema))
            parse_retention(keep)
        except InputError as wrong:
            raise wrong.under(f"topics.{name}") from None
        self.declared[name] = DeclaredTopic(
            name=name, schema=columns, keep=keep, external=external, was=was
        )

    def produces(
        self, topic: str, arrivals: ArrivalName = "poisson", *, share: float = 1.0
    ) -> Callable[[Make], Make]:
        """Let a function make the rows of a topic: fn(first_id, due) -> rows.

        It gets the number of the first record and the time at which each is due, and returns
        one row for each: a `pa.Table` or a dictionary of columns. The workload decides when
        records are due, `arrivals` how single ones are spread: "poisson", "deterministic" or
        "bursty". `share` is the part of the workload that this topic gets, if several topics
        are in proportion.
        """

        def decorate(function: Make) -> Make:
            if topic in self.feeds:
                raise InputError(f"topics.{topic}", "has two functions that produce its rows")
            self.feeds[topic] = Feed(topic=topic, make=function, arrivals=arrivals, share=share)
            return function

        return decorate

    @property
    def topics(self) -> dict[str, DeclaredTopic]:
        """All topics: declared ones, and those that follow from the operators."""
        topics = dict(self.declared)
        for operator in self.operators.values():
            for topic in operator.error_topics:
                _add(topics, topic, ERRORS_SCHEMA)
            for topic in operator.outputs:
                _add(topics, topic, None)
        for operator in self.operators.values():
            if operator.options.dropped_to is not None:
                inputs = (topics[topic].schema for topic in operator.reads if topic in topics)
                _add(topics, operator.options.dropped_to, next(inputs, None))
            find_kind(operator.kind).add_topics(operator, topics)
        return topics

    def run(
        self,
        workload: "str | Workload | None" = None,
        policy: "str | Policy | None" = None,
        *,
        out: "str | Path | None" = None,
        spark: "SparkSession | None" = None,
        background: bool = False,
        available_now: bool = False,
        progress: bool | None = None,
        allow_removal: Iterable[str] = (),
        **options: "Unpack[RunOptions]",
    ) -> "Run":
        """Run this pipeline on Spark; see `penstock.run`, which also takes names and files."""
        # the API is above this room; it is loaded when a run starts
        from penstock.api.execution import run  # noqa: PLC0415

        return run(
            self,
            workload,
            policy,
            out=out,
            spark=spark,
            background=background,
            available_now=available_now,
            progress=progress,
            allow_removal=allow_removal,
            **options,
        )

    def with_cluster(self, cluster: KafkaCluster) -> "Pipeline":
        """Return the same pipeline with the rows of its topics in Kafka."""
        placed = copy(self)
        placed.cluster = cluster
        placed.origin = placed if self.origin is self else self.origin.with_cluster(cluster)
        return placed

    def check(self) -> Topology:
        """Return the topology, or raise `InputError` with the first problem."""
        return validation.check(self)

    def check_scaled(self) -> Topology:
        """Return the topology of the operators whose replicas a policy decides on; see `check`.

        Ingest and egress have none: an operator behind an ingest is a source for policies.
        """
        return self.check().restrict({name for name, op in self.operators.items() if op.scales})


def _add(topics: dict[str, DeclaredTopic], name: str, schema: Any) -> None:
    topics.setdefault(name, DeclaredTopic(name=name, schema=schema))
