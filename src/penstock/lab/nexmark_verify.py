"""Runs a Nexmark query on Spark over so many events, and compares every row with DuckDB."""

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
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
from penstock.errors import InputError, PenstockError, nearest
from penstock.nexmark.event_order import KINDS
from penstock.nexmark.queries import QUERIES, first_variant
from penstock.nexmark.queries.common import OUT, QueryTruth, Variant, check_variant
from penstock.nexmark.settings import StreamSettings
from penstock.nexmark.times import FixedRate
from penstock.nexmark.truths import (
    RowDifference,
    check_database,
    difference,
    events_of,
    true_rows,
)
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.run_lock import quiet_spark_loggers, silence_accumulator_server
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

#: How often every operator gets other replicas on the way.
CHANGES = 4
#: Changes of replicas that every operator must have had.
MIN_CHANGES = CHANGES - 1
#: Tasks that run at once, and replicas that are started beforehand.
_SLOTS, _WARM = 20, 8
#: Rows that are put into a topic at once, and seconds after which nothing is waited for.
_MAX_APPEND_ROWS, _MAX_WAIT_S = 1 << 14, 600.0
#: Events per second of event time: windows, sessions and days close within few events, also of
#: those few that lie between two changes of replicas; and bids come at every time of day.
RATES = {
    **dict.fromkeys(("q5", "q8", "q11"), 1000.0),
    **{"q7": 100.0, "q10": 10.0, "q14": 0.5, "q17": 0.02},
}

#: Told the share of the events that are done.
Show = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySpec:
    """What is verified."""

    query: str
    events: int
    #: None for the thesis', where there is one.
    variant: Variant | None = None
    #: Events per second of event time; None for what suits the query.
    rate: float | None = None
    #: Whether every operator changes its replicas on the way.
    rescale: bool = False

    def check(self) -> None:
        """Refuse what nobody can verify."""
        if self.query not in QUERIES:
            problem = f"unknown query {self.query!r}"
            raise InputError("--query", problem, nearest(self.query, QUERIES))
        if self.events < 1:
            raise InputError("--events", f"must be at least 1, got {self.events}")
        check_variant(self.query, self.chosen, list(QUERIES[self.query].TRUTHS))

    @property
    def chosen(self) -> Variant:
        """The variant."""
        return self.variant or first_variant(self.query)

    @property
    def setting(self) -> StreamSettings:
        """The events."""
        rate = RATES.get(self.query, 10_000.0) if self.rate is None else self.rate
        return StreamSettings(hot=self.chosen == "reference", clock=FixedRate(rate))

    def pipeline(self) -> Pipeline:
        """The query over these events."""
        pipeline: Pipeline = QUERIES[self.query].build(self.chosen, self.setting)
        return pipeline


@dataclass(kw_only=True)
class VerifyResult:
    """What came out."""

    rows: int
    difference: RowDifference
    late: int
    #: By operator: how often other replicas ran than in the batch before.
    changes: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def is_right(self) -> bool:
        """Whether it is what DuckDB says, and nothing came too late to count."""
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


def verify(spec: VerifySpec, spark: SparkSession, run: Path, show: Show) -> VerifyResult:
    """Fill the topics, let the query work them off, and compare."""
    pipeline, layout = spec.pipeline(), RunLayout(run)
    make_topics(pipeline, layout)
    engine = SparkEngine(spark, pipeline, layout, pace=BatchTiming(batch_s=0.5, min_interval_s=0.1))
    watched = _BatchCounter(pipeline, layout)
    began = time.monotonic()
    engine.start()
    try:
        _run(engine, watched, spec, show)
    finally:
        engine.stop()
    watched.look()
    truth: QueryTruth = QUERIES[spec.query].TRUTHS[spec.chosen]
    closed = _closing_watermark_us(pipeline, layout, truth)
    true = true_rows(truth, events_of(spec.events, spec.setting), closed)
    found = _rows(Topic.open(layout.topic(OUT)))
    return VerifyResult(
        rows=len(found),
        difference=difference(found, true),
        late=watched.late,
        changes=watched.changes,
        seconds=round(time.monotonic() - began, 1),
    )


def fill_topics(pipeline: Pipeline, layout: RunLayout, first: int, end: int) -> None:
    """Put events into the topics that the query reads, as its producers would."""
    now_us = int(time.time() * 1e6)
    for name, feed in pipeline.feeds.items():
        begin, behind = KINDS[name].rows_within(first, end)
        with TopicWriter(Topic.open(layout.topic(name)), "verify") as writer:
            for row in range(begin, behind, _MAX_APPEND_ROWS):
                due = pa.array(
                    [now_us] * min(_MAX_APPEND_ROWS, behind - row), pa.timestamp("us", "UTC")
                )
                writer.append(feed.make(row, due))


def _run(engine: SparkEngine, watched: "_BatchCounter", spec: VerifySpec, show: Show) -> None:
    """Let everything be processed in parts; if asked for, each with other replicas.

    With few rows in the last batch, its watermark leaves little out of the comparison.
    """
    rng, parts = random.Random(1), CHANGES + 1
    for part in range(parts):
        first, half, end = (
            spec.events * number // parts // 2 for number in range(2 * part, 2 * part + 3)
        )
        fill_topics(engine.pipeline, engine.layout, first, half)
        stopping: set[str] = set()
        if part and spec.rescale:  # in the middle of the work
            engine.apply(Plan(replicas=_choose_replicas(engine.status().running, rng)))
            stopping |= engine.capabilities.pauses
        fill_topics(engine.pipeline, engine.layout, half, end)
        _drain(engine, watched, stopping, lambda done: show((part + done) / parts))  # noqa: B023


def _drain(engine: SparkEngine, watched: "_BatchCounter", stopping: set[str], show: Show) -> None:
    """Wait until everything is processed, and who stops for a change has made it."""
    deadline = time.monotonic() + _MAX_WAIT_S
    while stopping or not engine.is_drained:
        engine.advance(0.25)
        watched.look()
        if engine.failed:
            raise PenstockError("\n".join(engine.failed.values()))
        if time.monotonic() > deadline:
            raise PenstockError(f"the query did not finish in {_MAX_WAIT_S:g} s")
        status = engine.status()
        ends = (RescaledEvent, FailedEvent)
        stopping -= {event.operator for event in status.events if isinstance(event, ends)}
        show(status.processed_records / max(1, status.offered_records))


def _choose_replicas(running: Mapping[str, int], rng: random.Random) -> dict[str, int]:
    """Another number of replicas for each operator."""
    return {name: rng.choice([k for k in range(1, 5) if k != now]) for name, now in running.items()}


class _BatchCounter:
    """Counts, from the records of the batches, what a result alone does not show."""

    def __init__(self, pipeline: Pipeline, layout: RunLayout) -> None:
        self._logs = {name: BatchLog(layout.batches(name)) for name in pipeline.operators}
        self._replicas: dict[str, int] = {}
        self.changes = dict.fromkeys(pipeline.operators, 0)
        self.late = 0

    def look(self) -> None:
        """Read what is new."""
        for name, log in self._logs.items():
            for record in log.read_new():
                if not record.tasks:  # Spark's state was dealt anew, and nothing was read
                    continue
                before = self._replicas.get(name, record.replicas)
                self.changes[name] += record.replicas != before
                self._replicas[name] = record.replicas
                self.late += sum(task.late for task in record.tasks)


def _closing_watermark_us(pipeline: Pipeline, layout: RunLayout, truth: QueryTruth) -> int | None:
    """The watermark of the last batch of the operator that tells only what is closed."""
    if truth.closed_by is None:
        return None
    kind = find_spark_kind(pipeline.operators[truth.closed_by].kind)
    last = BatchLog(layout.batches(truth.closed_by)).last()
    return kind.watermark_us(layout, truth.closed_by, last)


def _rows(topic: Topic) -> pa.Table:
    batches: Sequence[pa.RecordBatch] = list(topic.read(topic.first, topic.end))
    return pa.Table.from_batches(batches, topic.schema)
