"""Runs a Nexmark query on Spark and compares every output row with DuckDB."""

import random
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.core.progress import WorkProgress
from penstock.engines.events import FailedEvent, RescaledEvent
from penstock.engines.port import Plan
from penstock.engines.spark.cluster.masters import check_java
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError, PenstockError
from penstock.nexmark.event_order import KINDS
from penstock.nexmark.queries import QUERIES, find_query, first_variant
from penstock.nexmark.queries.common import OUT, QueryTruth, Variant
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.times import FixedRate
from penstock.nexmark.truths import (
    RowDifference,
    check_database,
    difference,
    events_of,
    true_rows,
)
from penstock.pipelines.chained_pipeline import join_chains
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.run_lock import quiet_spark_loggers, silence_accumulator_server
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.kafka.cluster import KafkaCluster, make_cluster
from penstock.topics.kafka.topic_setup import delete_kafka_topics

#: How often the parallelism of every operator changes during a run.
CHANGES = 4
#: Minimum number of changes that every operator must have had.
MIN_CHANGES = CHANGES - 1
#: Concurrent tasks, and workers started in advance.
_SLOTS, _WARM = 20, 8
#: Maximum rows per append, and maximum seconds to wait for a part of the events.
_MAX_APPEND_ROWS, _MAX_WAIT_S = 1 << 14, 600.0
#: Events per second of event time. They are low enough that windows, sessions and days close
#: between two changes of replicas, and that bids cover every time of day.
RATES = {
    **dict.fromkeys(("q5", "q8", "q11"), 1000.0),
    **{"q7": 100.0, "q10": 10.0, "q14": 0.5, "q17": 0.02},
}

#: Receives the share of the events that are processed.
Show = Callable[[float], None]


@dataclass(frozen=True, kw_only=True)
class VerifySpec:
    """The query, its variant and the number of events to verify."""

    query: str
    events: int
    #: None: the variant of the thesis, if the query has one.
    variant: Variant | None = None
    #: Events per second of event time; None: the default of the query.
    rate: float | None = None
    #: Whether every operator is rescaled during the run.
    rescale: bool = False
    #: Whether neighbouring operators run as one query where they can.
    has_chains: bool = False
    #: kafka://host:port/prefix: the topics are in Kafka, under a new prefix that begins so.
    topics: str | None = None
    topics_properties: str | None = None

    def check(self) -> None:
        """Raise `InputError` for an unknown query or variant, or too few events."""
        find_query(self.query, self.variant)
        if self.events < 1:
            raise InputError("--events", f"must be at least 1, got {self.events}")

    @property
    def query_variant(self) -> Variant:
        """Return the variant to verify."""
        return self.variant or first_variant(self.query)

    @property
    def setting(self) -> StreamSettings:
        """Return the settings of the event generator."""
        rate = RATES.get(self.query, 10_000.0) if self.rate is None else self.rate
        return StreamSettings(hot=self.query_variant == "reference", clock=FixedRate(rate))

    @cached_property
    def cluster(self) -> KafkaCluster | None:
        """Return where in Kafka the topics are; None: in files."""
        address = self.topics and f"{self.topics}-{self.query}-{uuid.uuid4().hex[:8]}"
        return make_cluster(address, self.topics_properties, "--topics")

    def pipeline(self) -> Pipeline:
        """Build the pipeline of the query."""
        pipeline: Pipeline = QUERIES[self.query].build(self.query_variant, self.setting)
        if (cluster := self.cluster) is not None:
            pipeline = pipeline.with_cluster(cluster)
        return join_chains(pipeline) if self.has_chains else pipeline


@dataclass(kw_only=True)
class VerifyResult:
    """The number of output rows, and how they differ from the truth."""

    rows: int
    difference: RowDifference
    late: int
    #: By operator: how often its parallelism changed from one batch to the next.
    changes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        """Whether the rows equal those of DuckDB and no row was late."""
        return self.difference.is_none and not self.late


def is_verified(spec: VerifySpec, result: VerifyResult) -> bool:
    """Whether the rows are right and every operator was rescaled often enough."""
    enough = not spec.rescale or min(result.changes.values()) >= MIN_CHANGES
    return result.is_right and enough


def verify_in_session(spec: VerifySpec, show: Callable[[WorkProgress], None]) -> VerifyResult:
    """Verify in a new Spark session and a temporary directory."""
    spec.check()
    check_java()
    check_database()

    def show_share(share: float) -> None:
        show(WorkProgress(total=spec.events, kept=0, done=int(share * spec.events)))

    show_share(0.0)
    spec.pipeline().check()
    home = Path(tempfile.mkdtemp(prefix="penstock-verify-"))
    try:
        quiet_spark_loggers()
        spark = start_session(f"verify {spec.query}", _SLOTS, home / "spark.log")
        silence_accumulator_server(spark)
        try:
            start_workers(spark, _WARM, home / "warm")
            return verify(spec, spark, home / "run", show_share)
        finally:
            end_session(spark)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        if spec.cluster is not None:
            delete_kafka_topics(spec.cluster)


def verify(spec: VerifySpec, spark: SparkSession, run: Path, show: Show) -> VerifyResult:
    """Fill the topics, let the query process them, and compare the output."""
    pipeline, layout = spec.pipeline(), RunLayout(run)
    make_topics(pipeline, layout)
    engine = SparkEngine(
        spark, pipeline, layout, timing=BatchTiming(batch_s=0.5, min_interval_s=0.1)
    )
    counter = _BatchCounter(pipeline, layout)
    start_s = time.monotonic()
    engine.start()
    try:
        _run(engine, counter, spec, show)
    finally:
        engine.stop()
    counter.update()
    truth: QueryTruth = QUERIES[spec.query].truths[spec.query_variant]
    closed = _closing_watermark_us(pipeline, layout, truth)
    true = true_rows(truth, events_of(spec.events, spec.setting), closed)
    rows = _rows(Topic.open(layout.topic(OUT)))
    return VerifyResult(
        rows=len(rows),
        difference=difference(rows, true),
        late=counter.late,
        changes=counter.changes,
        seconds=round(time.monotonic() - start_s, 1),
    )


def fill_topics(pipeline: Pipeline, layout: RunLayout, first: int, end: int) -> None:
    """Append events to the topics that the query reads, as its producers do."""
    now_us = int(time.time() * 1e6)
    for name, feed in pipeline.feeds.items():
        begin, behind = KINDS[name].rows_within(first, end)
        with TopicWriter(Topic.open(layout.topic(name)), "verify") as writer:
            for row in range(begin, behind, _MAX_APPEND_ROWS):
                due = pa.array(
                    [now_us] * min(_MAX_APPEND_ROWS, behind - row), pa.timestamp("us", "UTC")
                )
                writer.append(feed.make(row, due))


def _run(engine: SparkEngine, counter: "_BatchCounter", spec: VerifySpec, show: Show) -> None:
    """Process the events in parts; with `rescale`, each part has another parallelism.

    The comparison ends at the watermark of the last batch, so small parts leave little out.
    """
    rng, parts = random.Random(1), CHANGES + 1
    for part in range(parts):
        first, half, end = (
            spec.events * number // parts // 2 for number in range(2 * part, 2 * part + 3)
        )
        fill_topics(engine.pipeline, engine.layout, first, half)
        pending: set[str] = set()
        if part and spec.rescale:  # while rows wait
            engine.apply(Plan(replicas=_choose_replicas(engine.status().running, rng)))
            pending |= engine.capabilities.pauses
        fill_topics(engine.pipeline, engine.layout, half, end)
        _drain(engine, counter, pending, lambda done: show((part + done) / parts))  # noqa: B023


def _drain(engine: SparkEngine, counter: "_BatchCounter", pending: set[str], show: Show) -> None:
    """Wait until all rows are processed and all operators that stop to rescale have done so."""
    deadline = time.monotonic() + _MAX_WAIT_S
    while pending or not engine.is_drained:
        engine.advance(0.25)
        counter.update()
        if engine.operator_errors:
            raise PenstockError("\n".join(engine.operator_errors.values()))
        if time.monotonic() > deadline:
            raise PenstockError(f"the query did not finish in {_MAX_WAIT_S:g} s")
        status = engine.status()
        ends = (RescaledEvent, FailedEvent)
        pending -= {event.operator for event in status.events if isinstance(event, ends)}
        show(status.processed_records / max(1, status.offered_records))


def _choose_replicas(running: Mapping[str, int], rng: random.Random) -> dict[str, int]:
    """Choose a different number of replicas for each operator."""
    return {name: rng.choice([k for k in range(1, 5) if k != now]) for name, now in running.items()}


class _BatchCounter:
    """Counts rescales and late rows from batch records; the output does not show them."""

    def __init__(self, pipeline: Pipeline, layout: RunLayout) -> None:
        self._logs = {name: BatchLog(layout.batches(name)) for name in pipeline.operators}
        self._replicas: dict[str, int] = {}
        self.changes = dict.fromkeys(pipeline.operators, 0)
        self.late = 0

    def update(self) -> None:
        """Count the new batch records."""
        for name, log in self._logs.items():
            for record in log.read_new():
                if not record.tasks:  # the batch only repartitioned Spark's state
                    continue
                before = self._replicas.get(name, record.replicas)
                self.changes[name] += record.replicas != before
                self._replicas[name] = record.replicas
                self.late += sum(task.late for task in record.tasks)


def _closing_watermark_us(pipeline: Pipeline, layout: RunLayout, truth: QueryTruth) -> int | None:
    """Return the last watermark of the operator that emits only closed windows, if any."""
    if truth.closed_by is None:
        return None
    kind = find_spark_kind(pipeline.operators[truth.closed_by].kind)
    last = BatchLog(layout.batches(truth.closed_by)).last()
    return kind.watermark_us(layout, truth.closed_by, last)


def _rows(topic: Topic) -> pa.Table:
    batches: Sequence[pa.RecordBatch] = list(topic.read(topic.first, topic.end))
    return pa.Table.from_batches(batches, topic.schema)
