"""What people write: topics, and functions between them.

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

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from penstock.core.topology import Topology
from penstock.errors import InputError
from penstock.pipelines import checking
from penstock.pipelines.declared import ERRORS_SCHEMA, DeclaredTopic, Feed, MakeRows, errors_topic
from penstock.pipelines.operator import Kind, OnError, Operator, Options
from penstock.topics.retention import parse_retention
from penstock.topics.schema import parse_schema
from penstock.workloads.pattern import ArrivalName

Make = TypeVar("Make", bound=MakeRows)
Decorator = Callable[[Callable[..., Any]], Operator]


class Pipeline:
    """A directed acyclic graph of operators joined by topics, declared piece by piece.

    Operators are named after their functions. Nothing starts while one is declared, and the
    order of declarations does not matter: `check` looks at the whole.
    """

    def __init__(self, name: str, objective_s: float | None = None, summary: str = "") -> None:
        checking.check_name("pipeline", name)
        self.name = name
        #: Latency to stay below.
        self.objective_s = objective_s
        self.summary = summary
        self.declared: dict[str, DeclaredTopic] = {}
        self.feeds: dict[str, Feed] = {}
        self.operators: dict[str, Operator] = {}

    def topic(self, name: str, schema: str, keep: str = "read", *, external: bool = False) -> None:
        """Declare a topic with its columns, such as "id long, taken timestamp, png binary".

        `keep` tells how long records stay: "read" until all operators have read them, or a
        time or a size, such as "10 minutes" and "2 GB". `external=True` says that another
        process fills it, such as `penstock produce`.
        """
        checking.check_name("topic", name)
        if name in self.declared:
            raise InputError(f"topics.{name}", "is declared twice")
        try:
            columns = checking.check_columns(parse_schema(schema))
            parse_retention(keep)
        except InputError as wrong:
            raise wrong.under(f"topics.{name}") from None
        self.declared[name] = DeclaredTopic(name=name, schema=columns, keep=keep, external=external)

    def produces(self, topic: str, arrivals: ArrivalName = "poisson") -> Callable[[Make], Make]:
        """Let a function make the rows of a topic: fn(first_id, due) -> pa.Table.

        It gets the number of the first record and the time at which each is due, and returns
        one row for each of them. How many are due when is the workload's matter.
        """

        def decorate(function: Make) -> Make:
            if topic in self.feeds:
                raise InputError(f"topics.{topic}", "has two functions that produce its rows")
            self.feeds[topic] = Feed(topic=topic, make=function, arrivals=arrivals)
            return function

        return decorate

    def operator(
        self,
        reads: str | Sequence[str],
        writes: str,
        *,
        min_replicas: int = 1,
        max_replicas: int = 8,
        replicas: int = 1,
        grouping: str = "even",
        timeout_s: float | None = None,
        queue_size: int | None = None,
        dropped_to: str | None = None,
        queue_limit: int | None = None,
    ) -> Decorator:
        """Add a function over Spark frames: fn(df) -> df.

        It sees `_event`, when each record was due, and may leave it out: rows get it back by
        their place in the line, exactly if each row in gives one row out.
        """
        options = Options(
            min_replicas=min_replicas,
            max_replicas=max_replicas,
            replicas=replicas,
            grouping=grouping,
            timeout_s=timeout_s,
            queue_size=queue_size,
            dropped_to=dropped_to,
            queue_limit=queue_limit,
        )
        return self._adding("frame", reads, writes, options)

    def batches(
        self,
        reads: str | Sequence[str],
        writes: str,
        *,
        min_replicas: int = 1,
        max_replicas: int = 8,
        replicas: int = 1,
        grouping: str = "even",
        timeout_s: float | None = None,
        queue_size: int | None = None,
        dropped_to: str | None = None,
        queue_limit: int | None = None,
        resource: Callable[[], Any] | None = None,
        chunk_rows: int | None = None,
        on_error: OnError = "stop",
    ) -> Decorator:
        """Add a function over Arrow batches: fn(batch) -> batch, or fn(batch, resource).

        It may return a `pa.RecordBatch`, a `pa.Table`, a dictionary of columns, or None for no
        rows, and does not see `_event`. `resource` is called once in each process; what it
        returns is handed to every call. With on_error="dead-letter" rows that the function
        fails on go to the topic NAME-errors, and the rest goes on.
        """
        options = Options(
            min_replicas=min_replicas,
            max_replicas=max_replicas,
            replicas=replicas,
            grouping=grouping,
            timeout_s=timeout_s,
            queue_size=queue_size,
            dropped_to=dropped_to,
            queue_limit=queue_limit,
            resource=resource,
            chunk_rows=chunk_rows,
            on_error=on_error,
        )
        return self._adding("batch", reads, writes, options)

    def ingest(self, writes: str) -> Decorator:
        """Add a function that reads from outside: fn(spark) -> streaming frame."""
        return self._adding("ingest", (), writes, Options(max_replicas=1))

    def egress(
        self,
        reads: str | Sequence[str],
        *,
        min_replicas: int = 1,
        max_replicas: int = 8,
        replicas: int = 1,
    ) -> Decorator:
        """Add a function that writes outside: fn(df) -> df.writeStream with format and options."""
        options = Options(min_replicas=min_replicas, max_replicas=max_replicas, replicas=replicas)
        return self._adding("egress", reads, None, options)

    @property
    def topics(self) -> dict[str, DeclaredTopic]:
        """Every topic: those that are declared, and those that follow from the operators."""
        found = dict(self.declared)
        for operator in self.operators.values():
            if operator.options.on_error == "dead-letter":
                _add(found, errors_topic(operator.name), ERRORS_SCHEMA)
            if operator.writes is not None:
                _add(found, operator.writes, None)
        for operator in self.operators.values():
            if operator.options.dropped_to is not None:
                inputs = (found[topic].schema for topic in operator.reads if topic in found)
                _add(found, operator.options.dropped_to, next(inputs, None))
        return found

    def check(self) -> Topology:
        """Return who feeds whom, or raise `InputError` with the first thing that is wrong."""
        return checking.check(self)

    def _adding(
        self, kind: Kind, reads: str | Sequence[str], writes: str | None, options: Options
    ) -> Decorator:
        def decorate(function: Callable[..., Any]) -> Operator:
            operator = Operator(
                name=getattr(function, "__name__", type(function).__name__),
                kind=kind,
                function=function,
                reads=(reads,) if isinstance(reads, str) else tuple(reads),
                writes=writes,
                options=options,
                topics=self.declared,
            )
            checking.check_new(operator, self.operators)
            self.operators[operator.name] = operator
            return operator

        return decorate


def _add(topics: dict[str, DeclaredTopic], name: str, schema: Any) -> None:
    topics.setdefault(name, DeclaredTopic(name=name, schema=schema))
