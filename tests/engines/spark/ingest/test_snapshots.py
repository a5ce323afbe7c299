"""What policies see of a pipeline with ingest and egress; no JVM is needed for that."""

from pathlib import Path

import pyarrow as pa
import pytest

from penstock.control.decider import Decider
from penstock.control.registry import builtin_policies
from penstock.core.policy import Policy
from penstock.core.snapshot import Snapshot
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.microbatch.snapshot_builder import build_snapshot, build_status
from penstock.engines.port import Status
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.pipeline_monitor import make_tracker
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.steady_clock import SteadyClock

POLICIES = [policy for policy in builtin_policies().values() if policy.reads == "operators"]
NOW = 1_000_000.0


def build_pipeline() -> Pipeline:
    """files -> work -> sum_up -> store: only the two in the middle have replicas."""
    pipeline = Pipeline("open")
    for name in ("raw", "worked", "summed"):
        pipeline.topic(name, "id long", keep="1 day")

    @pipeline.ingest(writes="raw")
    def files(spark: object) -> object:
        raise AssertionError("nothing starts here")

    @pipeline.batches(reads="raw", writes="worked", max_replicas=4)
    def work(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.batches(reads="worked", writes="summed", max_replicas=4)
    def sum_up(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.egress(reads="summed")
    def store(df: object) -> object:
        raise AssertionError("nothing starts here")

    return pipeline


def write_batch(layout: RunLayout, operator: str, reads: str, rows: int) -> None:
    """Leave the record of one batch of a replica that took 10 ms for each row."""
    task = TaskRecord(
        rows_in=rows, rows_out=rows, busy_s=rows / 100, cpu_s=None, began=NOW, ended=NOW
    )
    BatchLog(layout.batches(operator)).put(
        BatchRecord(
            batch=0,
            start={reads: 0},
            end={reads: rows},
            planned_at=NOW,
            committed_at=NOW + rows / 100,
            tasks=(task,),
            events=((NOW, rows),),
        )
    )


def append(layout: RunLayout, topic: str, rows: int) -> None:
    with TopicWriter(Topic.open(layout.topic(topic)), "test") as writer:
        writer.append(pa.table({"id": range(rows)}))


@pytest.fixture
def engine(tmp_path: Path) -> SparkEngine:
    """An engine that was never started: only what it tracks is looked at."""
    layout = RunLayout(tmp_path)
    pipeline = build_pipeline()
    make_topics(pipeline, layout)
    return SparkEngine(None, pipeline, layout)  # type: ignore[arg-type]


@pytest.fixture
def tracked(engine: SparkEngine) -> dict[str, OperatorTracker]:
    """Both operators; the first has taken 100 of 300 rows, 100 more came within a second."""
    layout = engine.layout
    append(layout, "raw", 200)
    append(layout, "worked", 100)
    operators = engine.pipeline.operators
    found = {
        name: make_tracker(
            engine.layout, operators[name], upstream, 1, BatchTiming(), SteadyClock()
        )
        for name in engine.topology.order
        for upstream in [engine.topology.upstream[name]]
    }
    for operator in found.values():
        operator.update(NOW, 60.0)
    write_batch(layout, "work", "raw", 100)
    write_batch(layout, "sum_up", "worked", 100)
    append(layout, "raw", 100)
    for operator in found.values():
        operator.update(NOW + 1, 60.0)
    return found


def take_snapshot(tracked: dict[str, OperatorTracker]) -> Snapshot:
    return build_snapshot(tracked, now=NOW + 1, began=NOW - 60, window_s=60.0, at=60.0)


def test_an_operator_behind_an_ingest_is_a_source(tracked: dict[str, OperatorTracker]) -> None:
    snapshot = take_snapshot(tracked)
    assert snapshot.topology.sources == ("work",)
    assert snapshot.operators["sum_up"].upstream == ("work",)
    assert snapshot.offered == {"work": 100.0}
    assert snapshot.operators["work"].queue == 200


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_every_policy_decides_about_it(policy: Policy, tracked: dict[str, OperatorTracker]) -> None:
    given = {"peak_rate": {"work": 100.0}} if policy.name == "static-peak" else {}
    decision = Decider(policy, policy.params.parse(given, "test")).decide(take_snapshot(tracked))
    assert set(decision.targets) == {"work", "sum_up"}


def test_what_an_ingest_brings_is_offered_and_the_last_one_before_an_egress_has_the_latency(
    engine: SparkEngine, tracked: dict[str, OperatorTracker]
) -> None:
    status = build_status(
        tracked, engine.topology, {"worked", "summed"}, at=1.0, second=lambda at: at - NOW
    )
    assert (status.offered_records, status.backlog_records) == (300, 200)
    assert list(status.latency) == ["work > sum_up"]


def test_the_status_of_an_engine_counts_the_rows_of_an_ingest_as_offered(
    engine: SparkEngine,
) -> None:
    append(engine.layout, "raw", 300)
    append(engine.layout, "worked", 100)
    for name in engine.topology.order:
        engine._monitor.track(engine.pipeline.operators[name], 1)
    status = engine.status()
    assert (status.offered_records, status.backlog_records) == (300, 300)


def test_a_status_changes_nothing_and_batches_are_new_until_they_are_cleared(
    engine: SparkEngine, tracked: dict[str, OperatorTracker]
) -> None:
    def build() -> Status:
        return build_status(tracked, engine.topology, set(), at=1.0, second=lambda at: at - NOW)

    first = build()
    assert first.batches
    assert build() == first
    for operator in tracked.values():
        operator.clear_new()
    assert not build().batches


def test_rows_that_wait_outside_are_offered_and_queue_up(
    tracked: dict[str, OperatorTracker],
) -> None:
    """40 rows more wait in front of the ingest than a second before."""
    tracked["work"].outside = 40.0
    tracked["work"].update(NOW + 2, 60.0)
    snapshot = build_snapshot(tracked, now=NOW + 2, began=NOW - 60, window_s=60.0, at=60.0)
    assert snapshot.offered == {"work": 70.0}
    assert snapshot.operators["work"].queue == 240
