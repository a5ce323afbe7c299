"""Builds the streaming query of an operator, with the help of its kind."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import (
    BooleanType,
    DateType,
    NumericType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from penstock.engines.spark.cluster.session import active_session
from penstock.engines.spark.io.sink import TopicTarget
from penstock.engines.spark.io.source import STAMPS, TOPIC, TopicSource
from penstock.engines.spark.kinds.kind import SparkKind, find_spark_kind
from penstock.engines.spark.native_state.repartition import settings
from penstock.engines.spark.operator_bundle import OperatorBundle, save_bundle
from penstock.engines.spark.operator_config import OperatorConfig
from penstock.engines.spark.run_layout import RunLayout
from penstock.engines.spark.topics_place import find_topic_maker, place_topics
from penstock.errors import InputError
from penstock.pipelines.kinds.schemas import check_event_time
from penstock.pipelines.loader import shipped_modules
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.topic_declaration import DeclaredTopic
from penstock.topics.embedded.retention import parse_retention
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT, first_difference, without_event

#: Spark checks the bytes of an Arrow batch after each row, which costs more than the row itself.
#: Where rows are small and of fixed size, the limit of rows is enough.
_BYTES, _NO_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1)
_SMALL = (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)
#: Sources of topics wait for rows themselves, so that Spark need not wait between two questions.
POLLING = {"spark.sql.streaming.pollingDelay": "10ms"}
#: Parts of a plan that keep state or move rows between tasks.
_STATEFUL = (
    *("Aggregate", "Deduplicate", "Join", "MapGroups", "FlatMapGroups", "TransformWithState"),
    *("Repartition", "GlobalLimit", "Sort"),
)


def make_topics(pipeline: Pipeline, layout: RunLayout) -> None:
    """Make every topic whose schema is declared; frame operators make theirs later."""
    place_topics(pipeline, layout)
    for declared in pipeline.topics.values():
        if declared.schema is not None:
            _make_topic(layout, declared, declared.schema)


def _make_topic(layout: RunLayout, declared: DeclaredTopic, schema: pa.Schema) -> None:
    keep, partition = parse_retention(declared.keep), declared.partition
    make = find_topic_maker(layout)
    Topic.create(layout.topic(declared.name), schema, keep, partition, may_add=True, kafka=make)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryContext:
    """One operator, and what its kind needs to make its query."""

    spark: SparkSession
    pipeline: Pipeline
    operator: Operator
    layout: RunLayout
    kind: SparkKind
    #: Partitions of Spark's own state at the first start.
    partitions: int = 1

    def read(self, *, stamps: bool = True, topic: str | None = None) -> DataFrame:
        """Return a frame of the operator's source; of one topic, or without `_event`."""
        options = self._options
        if topic is not None:
            options[TOPIC] = topic
        if not stamps:
            options[STAMPS] = "no"
        self.spark.dataSource.register(TopicSource)  # once per query: see `TopicSource`
        return self.spark.readStream.format(TopicSource.name()).options(**options).load()

    def write(self, frame: DataFrame, *, stamped: bool) -> DataStreamWriter:
        """Save the operator for its tasks and return a writer into its topics."""
        bundle = OperatorBundle(
            operator=self.operator,
            kind=self.kind,
            outputs=self._schemas(self.operator.fills),
            inputs=self._schemas(self.operator.reads),
            stamped=stamped,
        )
        modules = shipped_modules(self.pipeline.origin)
        save_bundle(self.layout.code(self.operator.name), bundle, modules)
        writer = frame.writeStream.format(TopicTarget.name()).options(**self._options)
        return writer.outputMode("append")

    def fit_topic(self, frame: DataFrame) -> None:
        """Make the topic with the columns of the frame, or check that they fit."""
        operator = self.operator
        if operator.writes is None:
            return
        _check_event_time(operator, frame)
        columns = without_event(_make_nullable(to_arrow_schema(frame.schema, timezone="UTC")))
        declared = self.pipeline.topics[operator.writes]
        if declared.schema is None:
            _make_topic(self.layout, declared, columns)
        elif difference := first_difference(
            _make_nullable(without_event(declared.schema)), columns
        ):
            problem = f"its rows do not fit topic {operator.writes}: {difference}"
            hint = "cast in the operator, or change the topic's schema"
            raise InputError(operator.name, problem, hint)

    @property
    def _options(self) -> dict[str, str]:
        return {"run": str(self.layout.run.resolve()), "operator": self.operator.name}

    def _schemas(self, topics: Iterable[str]) -> dict[str, pa.Schema]:
        return {name: Topic.open(self.layout.topic(name)).schema for name in topics}


def make_query(
    spark: SparkSession,
    pipeline: Pipeline,
    operator: Operator,
    layout: RunLayout,
    config: OperatorConfig,
    partitions: int = 1,
    *,
    available_now: bool = False,
) -> Callable[[], StreamingQuery]:
    """Make an operator's query and the topics that it writes; return the call that starts it.

    `partitions` is the number of partitions of Spark's own state at the first start. With
    `available_now`, a query that reads from outside ends when it has read what is there.
    """
    config.save(layout)
    kind = find_spark_kind(operator.kind)
    context = QueryContext(
        spark=spark,
        pipeline=pipeline,
        operator=operator,
        layout=layout,
        kind=kind,
        partitions=partitions,
    )
    with active_session(spark):
        parts = kind.make_query(context)
    checkpoint = str(layout.checkpoint(operator.name).resolve())
    writer = parts.writer.option("checkpointLocation", checkpoint).queryName(operator.name)
    has_own_source = not kind.reads_outside and not kind.has_spark_state
    polling = POLLING if config.waits_for_rows and has_own_source else {}
    if available_now and kind.reads_outside:
        writer = writer.trigger(availableNow=True)

    def start() -> StreamingQuery:
        try:
            with active_session(spark), settings(spark, {**polling, **parts.settings}):
                return writer.start()
        except AnalysisException as wrong:
            hint = "rows come out in append mode: what groups needs df.withWatermark(...)"
            problem = str(wrong).splitlines()[0]
            raise InputError(operator.name, problem, hint, operator.where) from None

    return start


def make_size_settings(schema: StructType) -> dict[str, str]:
    """Return settings that disable the byte check of each row, where rows are small."""
    return {_BYTES: _NO_LIMIT} if _has_small_rows(schema) else {}


def _has_small_rows(schema: StructType) -> bool:
    return all(isinstance(field.dataType, _SMALL) for field in schema)


def check_streaming(operator: Operator, result: object) -> DataFrame:
    """Return the result of a function if it is a streaming frame, or raise `InputError`."""
    if not isinstance(result, DataFrame) or not result.isStreaming:
        problem = f"must return a streaming DataFrame, got {type(result).__name__}"
        raise InputError(operator.name, problem, "transform the frame that the function is given")
    return result


def find_stateful_part(frame: DataFrame) -> str:
    """Return the first node of a frame's plan that keeps state or moves rows; empty if none."""
    return _find_stateful_node(frame._jdf.queryExecution().analyzed())


def _find_stateful_node(node: Any) -> str:
    """Return the first such node below a node; the static side of a join does not count."""
    if not node.isStreaming():
        return ""
    children = node.children()
    below = [children.apply(number) for number in range(children.size())]
    name = str(node.nodeName())
    # a join with a static table keeps no state
    is_lookup = name == "Join" and not all(child.isStreaming() for child in below)
    if name.startswith(_STATEFUL) and not is_lookup:
        return name
    return next((part for child in below if (part := _find_stateful_node(child))), "")


def _check_event_time(operator: Operator, frame: DataFrame) -> None:
    """Raise `InputError` if the `time` of an ingest is wrong, before any row is read."""
    if operator.options.time is None:
        return
    try:
        check_event_time(operator.options.time, to_arrow_schema(frame.schema, timezone="UTC"))
        if EVENT in frame.columns:
            problem = f"names {operator.options.time!r}, but the frame has {EVENT}, too"
            raise InputError("time", problem, "leave one of them out")
    except InputError as wrong:
        raise wrong.under(operator.name).at(operator.where) from None


def _make_nullable(schema: pa.Schema) -> pa.Schema:
    """Return the schema with nullable columns: Spark and Arrow differ in nullability."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])
