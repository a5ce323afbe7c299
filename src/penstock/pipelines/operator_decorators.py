"""Decorators that turn functions into operators of a pipeline."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from penstock.errors import InputError
from penstock.pipelines import validation
from penstock.pipelines.operator import OnError, Operator, Options
from penstock.pipelines.source_location import place_of
from penstock.pipelines.stateful.columns import Names
from penstock.pipelines.stateful.ready_function import Ready
from penstock.pipelines.stateful.slice_options import Slicing, keys_of
from penstock.pipelines.topic_declaration import DeclaredTopic
from penstock.topics.schema import EVENT

Decorator = Callable[[Callable[..., Any]], Operator]


class OperatorDecorators:
    """Adds operators to a pipeline, one decorator for each kind of operator.

    An operator is named after its function. `was` is the name that it had at an earlier start: a
    resumed run keeps its state.
    """

    def __init__(self) -> None:
        self.declared: dict[str, DeclaredTopic] = {}
        self.operators: dict[str, Operator] = {}

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
        was: str | None = None,
    ) -> Decorator:
        """Add a function over Spark frames: fn(df) -> df.

        It sees `_event`, the time at which each record was due, and may leave it out. Then rows
        get it back by position: exactly if there is one output row for each input row.
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
        return self.of_kind("frame", reads, writes, options, was)

    def batches(
        self,
        reads: str | Sequence[str],
        writes: str | Sequence[str],
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
        call_timeout_s: float | None = None,
        on_error: OnError = "stop",
        whole_commits: bool | Sequence[str] = False,
        chain: bool = True,
        was: str | None = None,
    ) -> Decorator:
        """Add a function over Arrow batches: fn(batch) -> batch, or fn(batch, resource).

        It may return a `pa.RecordBatch`, a `pa.Table`, a dictionary of columns, or None for no
        rows, and does not see `_event`. With several topics in `writes` it returns a dictionary
        of such rows by topic; the first topic is the main output, which is counted.

        `resource` is called once in each process; its result is passed to every call. A call that
        takes longer than `call_timeout_s` ends its process. With `whole_commits` a batch ends
        where a commit of these inputs ends; True means all inputs. A commit is what one batch of
        the operator before has written. With on_error="dead-letter" rows that the function fails
        on go to the topic NAME-errors, and the others are processed. With chain=False it always
        has a query to itself; see `penstock run --chain`.
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
            call_timeout_s=call_timeout_s,
            on_error=on_error,
            whole_commits=_topics_of(whole_commits, reads),
            chain=chain,
        )
        return self.of_kind("batch", reads, writes, options, was)

    def sliced(
        self,
        reads: str | Sequence[str],
        writes: str | Sequence[str],
        *,
        key: Names | Mapping[str, Names] = (),
        state: str = "",
        state_key: str = "",
        broadcast: Sequence[str] = (),
        slices: int = 64,
        time: str = EVENT,
        delay_s: float = 0.0,
        ttl_s: float | None = None,
        late_to: str | None = None,
        name: str | None = None,
        min_replicas: int = 1,
        max_replicas: int = 8,
        replicas: int = 1,
        queue_limit: int | None = None,
        call_timeout_s: float | None = None,
        whole_commits: bool | Sequence[str] = False,
        chain: bool = True,
        was: str | None = None,
    ) -> Decorator:
        """Add a function with keyed state: fn(batch, state) -> batch, or fn(inputs, state).

        It is called for one slice at a time, with the rows of that slice and a `State` that
        stores the columns of `state` by `key`. A ready-made function declares them itself:
        `pipeline.sliced("words", "counts", name="count")(counts(by="word"))`.

        With several topics in `writes` it returns a dictionary of rows by topic; the first topic
        is the main output, which is counted. With `whole_commits` a batch ends where a commit of
        these inputs ends, such as what one batch of the operator before has written; True means
        all inputs.

        The watermark is the latest time of the source batches that were read completely, minus
        `delay_s`; with several inputs it is the earliest. Late rows are counted, and go to
        `late_to` if it is given. With chain=False it always has a query to itself.
        """
        inputs = (reads,) if isinstance(reads, str) else tuple(reads)
        options = Options(
            min_replicas=min_replicas,
            max_replicas=max_replicas,
            replicas=replicas,
            queue_limit=queue_limit,
            call_timeout_s=call_timeout_s,
            whole_commits=_topics_of(whole_commits, reads),
            chain=chain,
        )

        def decorate(function: Callable[..., Any]) -> Operator:
            own = str(name or getattr(function, "__name__", type(function).__name__.lower()))
            try:
                if isinstance(function, Ready):
                    slicing = self._slicing(
                        function, inputs, writes, slices, delay_s, ttl_s, late_to
                    )
                else:
                    slicing = Slicing(
                        keys=keys_of(key, inputs, broadcast),
                        broadcast=tuple(broadcast),
                        slices=slices,
                        time=time,
                        delay_s=delay_s,
                        ttl_s=ttl_s,
                        state=state,
                        state_key=state_key,
                        late_to=late_to,
                    )
            except InputError as wrong:
                raise wrong.under(own).at(place_of(function)) from None
            return self._register("sliced", own, function, inputs, writes, options, was, slicing)

        return decorate

    def native(
        self,
        reads: str | Sequence[str],
        writes: str,
        *,
        min_replicas: int = 1,
        max_replicas: int = 8,
        replicas: int = 1,
        queue_limit: int | None = None,
        was: str | None = None,
    ) -> Decorator:
        """Add a function over Spark frames with Spark's own state: fn(df) -> df.

        Aggregations, joins, sessions, `transformWithState`. It gets one frame for each topic, in
        their order. The output is in append mode, so aggregations need a watermark, such as
        `df.withWatermark("_event", "5 seconds")`. A change of replicas stops this operator
        for a moment, because its state is repartitioned; a sliced operator does not stop.
        """
        options = Options(
            min_replicas=min_replicas,
            max_replicas=max_replicas,
            replicas=replicas,
            queue_limit=queue_limit,
        )
        return self.of_kind("native", reads, writes, options, was)

    def _slicing(
        self,
        ready: Ready,
        inputs: Sequence[str],
        writes: str | Sequence[str],
        slices: int,
        delay_s: float,
        ttl_s: float | None,
        late_to: str | None,
    ) -> Slicing:
        """Return the options of a ready-made function, and declare the topic that it writes."""
        schemas = {}
        for topic in inputs:
            declared = self.declared.get(topic)
            if declared is None or declared.schema is None:
                hint = f"declare it before: pipeline.topic({topic!r}, ...)"
                raise InputError("reads", f"the columns of {topic!r} are not known", hint)
            schemas[topic] = declared.schema
        if not isinstance(writes, str):
            hint = "let an operator that reads this topic write the others"
            raise InputError("writes", "a ready-made function writes one topic", hint)
        if writes not in self.declared:
            schema = ready.output_schema(schemas)
            self.declared[writes] = DeclaredTopic(name=writes, schema=schema)
        return ready.slicing(schemas, slices=slices, delay_s=delay_s, ttl_s=ttl_s, late_to=late_to)

    def ingest(self, writes: str, *, time: str | None = None, was: str | None = None) -> Decorator:
        """Add a function that reads from outside: fn(spark) -> streaming frame.

        `time` names a timestamp column: its value is the event time of a row (`_event`), which
        windows and watermarks use. A row with a null there, and every row without `time`, has
        the time of its arrival. Latency always counts from the arrival.
        """
        return self.of_kind("ingest", (), writes, Options(max_replicas=1, time=time), was)

    def egress(
        self,
        reads: str | Sequence[str],
        *,
        min_replicas: int = 1,
        max_replicas: int = 8,
        replicas: int = 1,
        was: str | None = None,
    ) -> Decorator:
        """Add a function that writes outside: fn(df) -> df.writeStream with format and options.

        What a kill leaves in the sink depends on the sink; see docs/production.md.
        """
        options = Options(min_replicas=min_replicas, max_replicas=max_replicas, replicas=replicas)
        return self.of_kind("egress", reads, None, options, was)

    def of_kind(
        self,
        kind: str,
        reads: str | Sequence[str],
        writes: str | Sequence[str] | None,
        options: Options = Options(),  # noqa: B008  (immutable)
        was: str | None = None,
    ) -> Decorator:
        """Add a function of any kind that is built in or registered."""
        inputs = (reads,) if isinstance(reads, str) else tuple(reads)

        def decorate(function: Callable[..., Any]) -> Operator:
            name = getattr(function, "__name__", type(function).__name__)
            return self._register(kind, name, function, inputs, writes, options, was)

        return decorate

    def _register(
        self,
        kind: str,
        name: str,
        function: Callable[..., Any],
        reads: tuple[str, ...],
        writes: str | Sequence[str] | None,
        options: Options,
        was: str | None,
        slicing: Slicing | None = None,
    ) -> Operator:
        main, *others = (writes,) if isinstance(writes, str | None) else writes or (None,)
        operator = Operator(
            name=name,
            kind=kind,
            function=function,
            reads=reads,
            writes=main,
            extra_outputs=tuple(topic for topic in others if topic is not None),
            options=options,
            slicing=slicing,
            was=was,
            topics=self.declared,
        )
        validation.check_new(operator, self.operators)
        self.operators[operator.name] = operator
        return operator


def _topics_of(chosen: bool | Sequence[str], reads: str | Sequence[str]) -> tuple[str, ...]:
    """Return the topics that an option names; True means all inputs."""
    if isinstance(chosen, bool):
        chosen = reads if chosen else ()
    return (chosen,) if isinstance(chosen, str) else tuple(chosen)
