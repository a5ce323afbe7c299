"""One streaming query an operator: how each kind of operator becomes one."""

from collections.abc import Callable, Mapping
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

from penstock.engines.spark.io.sink import TopicTarget
from penstock.engines.spark.io.source import STAMPS, TOPIC, TopicSource
from penstock.engines.spark.native_state.repartition import native_settings, settings
from penstock.engines.spark.operator_bundle import OperatorBundle, save_bundle
from penstock.engines.spark.operator_config import OperatorConfig
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.function_call import call_frame
from penstock.pipelines.kinds.schemas import check_event_time
from penstock.pipelines.loader import shipped_modules
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.topic_declaration import DeclaredTopic
from penstock.topics.embedded.retention import parse_retention
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT, first_difference, without_event

#: Spark looks at the size of a batch for Python after each row, which takes longer than the row
#: does; where rows are all of a size and small, their number is limit enough.
_BYTES, _NO_LIMIT = "spark.sql.execution.arrow.maxBytesPerBatch", str(2**31 - 1)
_SMALL = (NumericType, BooleanType, DateType, TimestampType, TimestampNTZType)
#: Parts of a plan that keep state or move rows between tasks.
_STATEFUL = (
    *("Aggregate", "Deduplicate", "Join", "MapGroups", "FlatMapGroups", "TransformWithState"),
    *("Repartition", "GlobalLimit", "Sort"),
)


def make_topics(pipeline: Pipeline, layout: RunLayout) -> None:
    """Make every topic whose schema is known; those of frame operators may come later."""
    for declared in pipeline.topics.values():
        if declared.schema is not None:
            _make_topic(layout, declared, declared.schema)


def _make_topic(layout: RunLayout, declared: DeclaredTopic, schema: pa.Schema) -> None:
    keep, partition = parse_retention(declared.keep), declared.partition
    Topic.create(layout.topic(declared.name), schema, keep, partition, may_add=True)


def make_query(
    spark: SparkSession,
    pipeline: Pipeline,
    operator: Operator,
    layout: RunLayout,
    config: OperatorConfig,
    partitions: int = 1,
) -> Callable[[], StreamingQuery]:
    """Make an operator's query and the topics that it writes; return what starts it.

    State of Spark's own is cut into so many partitions at the very first start.
    """
    config.save(layout)
    wanted: dict[str, str] = {}
    if operator.kind == "egress":
        writer = operator.function(_read(spark, operator, layout))
        if not isinstance(writer, DataStreamWriter):
            problem = f"must return a DataStreamWriter, got {type(writer).__name__}"
            raise InputError(operator.name, problem, "return df.writeStream with its format set")
    else:
        frame, stamped = _rows(spark, pipeline, operator, layout)
        if operator.kind in ("frame", "ingest", "native") and _all_of_a_size(frame.schema):
            wanted[_BYTES] = _NO_LIMIT
        if operator.kind == "native":
            wanted |= native_settings(partitions)
        writer = _into_topic(pipeline, operator, layout, frame, stamped)
    checkpoint = str(layout.checkpoint(operator.name).resolve())
    writer = writer.option("checkpointLocation", checkpoint).queryName(operator.name)

    def start() -> StreamingQuery:
        try:
            with settings(spark, wanted):
                return writer.start()
        except AnalysisException as wrong:
            hint = "rows come out in append mode: what groups needs df.withWatermark(...)"
            problem = str(wrong).splitlines()[0]
            raise InputError(operator.name, problem, hint, operator.where) from None

    return start


def _all_of_a_size(schema: StructType) -> bool:
    return all(isinstance(field.dataType, _SMALL) for field in schema)


def _rows(
    spark: SparkSession, pipeline: Pipeline, operator: Operator, layout: RunLayout
) -> tuple[DataFrame, bool]:
    """Return what goes into the operator's sink, and whether rows carry their stamps."""
    if operator.kind in ("batch", "sliced"):
        return _read(spark, operator, layout), False
    frame = _frame(spark, operator, layout)
    _fit_topic(pipeline, operator, frame, layout)
    return frame, EVENT in frame.columns


def _into_topic(
    pipeline: Pipeline, operator: Operator, layout: RunLayout, frame: DataFrame, stamped: bool
) -> DataStreamWriter:
    outputs = _outputs(operator, layout)
    inputs = {name: Topic.open(layout.topic(name)).schema for name in operator.reads}
    bundle = OperatorBundle(operator=operator, outputs=outputs, inputs=inputs, stamped=stamped)
    save_bundle(layout.code(operator.name), bundle, shipped_modules(pipeline))
    options = {"run": str(layout.run.resolve()), "operator": operator.name}
    return frame.writeStream.format(TopicTarget.name()).options(**options).outputMode("append")


def _read(
    spark: SparkSession,
    operator: Operator,
    layout: RunLayout,
    stamps: bool = True,
    topic: str | None = None,
) -> DataFrame:
    options = {"run": str(layout.run.resolve()), "operator": operator.name}
    if topic is not None:
        options[TOPIC] = topic
    if not stamps:
        options[STAMPS] = "no"
    spark.dataSource.register(TopicSource)  # anew for each query: see there
    return spark.readStream.format(TopicSource.name()).options(**options).load()


def _frame(spark: SparkSession, operator: Operator, layout: RunLayout) -> DataFrame:
    """Call the function; if it does not pass `_event` on, that need not go through the JVM."""
    if operator.kind == "ingest":
        return _check_frame(operator, operator.function(spark))
    if operator.kind == "native":
        inputs = [_read(spark, operator, layout, topic=topic) for topic in operator.reads]
        return _check_frame(operator, call_frame(operator, *inputs))
    frame = _check_frame(operator, call_frame(operator, _read(spark, operator, layout)))
    if EVENT in frame.columns:
        return frame
    try:
        plain = operator.function(_read(spark, operator, layout, stamps=False))
    except AnalysisException:  # it looks at the column all the same
        return frame
    return _check_frame(operator, plain)


def _check_frame(operator: Operator, frame: object) -> DataFrame:
    if not isinstance(frame, DataFrame) or not frame.isStreaming:
        problem = f"must return a streaming DataFrame, got {type(frame).__name__}"
        raise InputError(operator.name, problem, "transform the frame that the function is given")
    if operator.kind == "ingest":
        return frame
    found = _stateful_part(frame._jdf.queryExecution().analyzed())
    if operator.kind == "native":
        if not found:
            hint = "declare it with pipeline.operator, which changes its replicas without a stop"
            raise InputError(operator.name, "has no state that Spark would keep", hint)
        return frame
    if found:
        raise InputError(
            operator.name,
            f"a frame operator works row by row, but this one has {found}",
            "aggregations, joins of streams and orderings need state: declare it with"
            " pipeline.native, or use pipeline.sliced",
        )
    return frame


def _stateful_part(node: Any) -> str:
    """Name the first part of a plan that keeps state or moves rows; a static side may do so."""
    if not node.isStreaming():
        return ""
    children = node.children()
    below = [children.apply(number) for number in range(children.size())]
    name = str(node.nodeName())
    # a stream may be joined with a table: each row is looked up by itself
    is_lookup = name == "Join" and not all(child.isStreaming() for child in below)
    if name.startswith(_STATEFUL) and not is_lookup:
        return name
    return next((found for child in below if (found := _stateful_part(child))), "")


def _fit_topic(pipeline: Pipeline, operator: Operator, frame: DataFrame, layout: RunLayout) -> None:
    """Make the topic from what the frame shows, or check that the frame fits it."""
    if operator.writes is None:
        return
    _check_event_time(operator, frame)
    found = without_event(_loose(to_arrow_schema(frame.schema, timezone="UTC")))
    declared = pipeline.topics[operator.writes]
    if declared.schema is None:
        _make_topic(layout, declared, found)
        return
    if difference := first_difference(_loose(without_event(declared.schema)), found):
        problem = f"its rows do not fit topic {operator.writes}: {difference}"
        raise InputError(
            operator.name, problem, "cast in the operator, or change the topic's schema"
        )


def _check_event_time(operator: Operator, frame: DataFrame) -> None:
    """Find a wrong `time` of an ingest before any row comes."""
    if operator.options.time is None:
        return
    try:
        check_event_time(operator.options.time, to_arrow_schema(frame.schema, timezone="UTC"))
        if EVENT in frame.columns:
            problem = f"names {operator.options.time!r}, but the frame has {EVENT}, too"
            raise InputError("time", problem, "leave one of them out")
    except InputError as wrong:
        raise wrong.under(operator.name).at(operator.where) from None


def _loose(schema: pa.Schema) -> pa.Schema:
    """The same without saying what may be missing: Spark and Arrow differ in that too often."""
    return pa.schema([pa.field(field.name, field.type) for field in schema])


def _outputs(operator: Operator, layout: RunLayout) -> Mapping[str, pa.Schema]:
    """Schemas of everything that an operator writes, its own topic first."""
    return {name: Topic.open(layout.topic(name)).schema for name in operator.fills}
