"""Every kind of operator on real Spark, compared with what plain Python makes of the same rows."""

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.spark_engines import Started, until

from penstock.control.decider import Decider
from penstock.control.registry import builtin_policies
from penstock.core.decision import Decision
from penstock.core.policy import Policy
from penstock.core.snapshot import Snapshot
from penstock.engines.events import DroppedEvent, FailedEvent
from penstock.engines.port import Plan
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.plans import assign_replicas
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.readers import positions
from penstock.topics.embedded.segment import SEGMENTS, read_rows
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

pytestmark = pytest.mark.spark
POLICIES = [policy for policy in builtin_policies().values() if policy.reads == "operators"]


def fill(layout: RunLayout, pipeline: Pipeline, topic: str, **columns: list[Any]) -> None:
    """Put rows into a topic before anything runs."""
    schema = pipeline.topics[topic].schema
    log = Topic.create(layout.topic(topic), schema)
    with TopicWriter(log, "test") as writer:
        writer.append(pa.table(columns, schema=schema))


def rows(layout: RunLayout, topic: str, column: str = "id") -> list[Any]:
    """Everything that is in a topic."""
    log = Topic.open(layout.topic(topic))
    return [v for batch in log.read(log.first, log.end) for v in batch[column].to_pylist()]


def decide(policy: Policy, snapshot: Snapshot) -> Decision:
    """Let a policy decide with its default parameters."""
    given = {"peak_rate": {"double": 100.0}} if policy.name == "static-peak" else {}
    return Decider(policy, policy.params.parse(given, "test")).decide(snapshot)


def drained(engine: SparkEngine) -> Callable[[], bool]:
    return lambda: engine.is_drained


def test_chains_splits_filters_and_unions(started: Started, layout: RunLayout) -> None:
    """And k changes on the way: exactly so many tasks, no row lost or doubled, order kept."""
    pipeline = Pipeline("shapes")
    pipeline.topic("in", "id long, word string", external=True)
    pipeline.topic("even", "id long, word string", keep="1 day")
    pipeline.topic("odd", "id long, word string", keep="1 day")
    pipeline.topic("all", "id long, word string, size int")

    @pipeline.batches(reads="in", writes="even", min_replicas=2, replicas=2, max_replicas=5)
    def keep_even(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch.filter(pc.equal(pc.bit_wise_and(batch["id"], 1), 0))

    @pipeline.operator(reads="in", writes="odd", max_replicas=5)
    def keep_odd(df: DataFrame) -> DataFrame:
        return df.where("id % 2 = 1").select("id", F.upper("word").alias("word"))

    @pipeline.batches(reads=["even", "odd"], writes="all", max_replicas=5, grouping="key:word")
    def measure(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        sizes = pc.utf8_length(batch["word"])
        return {"id": batch["id"], "word": batch["word"], "size": sizes}

    words = [f"w{i % 7}" * (i % 3 + 1) for i in range(3000)]
    fill(layout, pipeline, "in", id=list(range(3000)), word=words)
    engine = started.engine(pipeline, layout=layout)
    for k in (3, 5, 2):
        engine.apply(Plan(replicas={"keep_even": k, "keep_odd": k, "measure": k}))
        engine.advance(0.7)
    with pytest.raises(InputError, match="from 2 to 5, got 1"):
        engine.apply(Plan(replicas={"keep_even": 1}))
    until(engine, drained(engine))

    status = engine.status()  # two operators read these rows, and still they are 3,000
    assert (status.offered_records, status.backlog_records) == (3000, 0)
    assert rows(layout, "even") == list(range(0, 3000, 2))
    assert rows(layout, "odd") == list(range(1, 3000, 2))
    assert rows(layout, "odd", "word") == [words[i].upper() for i in range(1, 3000, 2)]
    expected = {i: words[i] if i % 2 == 0 else words[i].upper() for i in range(3000)}
    assert Counter(rows(layout, "all")) == Counter(range(3000))
    found = dict(zip(rows(layout, "all"), rows(layout, "all", "word"), strict=True))
    assert found == expected
    log = BatchLog(layout.batches("measure"))
    seen = [record for n in range(500) if (record := log.get(n)) is not None]
    assert {record.replicas for record in seen} <= {1, 2, 3, 5}
    _check_keys(layout, [record for record in seen if len(record.outputs.get("all", ())) > 1])


def _check_keys(layout: RunLayout, records: list[Any]) -> None:
    """Rows of one key are the work of one replica: each segment has keys of its own."""
    assert records
    for record in records:
        by_segment = []
        for segment in record.outputs["all"]:
            path = layout.topic("all") / SEGMENTS / segment.file
            words = [
                w for b in read_rows(path, segment, 0, segment.rows) for w in b["word"].to_pylist()
            ]
            homes = set(assign_replicas(pa.array(words), record.replicas).tolist())
            assert len(homes) == 1
            by_segment.append(homes)
        assert len(set.union(*by_segment)) == len(by_segment)


def test_load_balancing_gives_a_slow_replica_less(started: Started, layout: RunLayout) -> None:
    pipeline = Pipeline("uneven")
    pipeline.topic("in", "id long", external=True)
    pipeline.topic("out", "id long")

    @pipeline.batches(
        reads="in", writes="out", replicas=3, max_replicas=3, grouping="load", chunk_rows=8
    )
    def work(batch: pa.RecordBatch) -> pa.RecordBatch:
        context = TaskContext.get()
        slow = context is not None and context.partitionId() == 0
        time.sleep(batch.num_rows * (0.008 if slow else 0.002))
        return batch

    fill(layout, pipeline, "in", id=list(range(6000)))
    engine = started.engine(pipeline, layout=layout)
    until(engine, lambda: len(engine.trackers["work"].records) >= 6)
    last = engine.trackers["work"].records[-1]
    slow, *others = [task.rows_in for task in last.tasks]
    assert slow < 0.5 * min(others)
    assert max(task.busy_s for task in last.tasks) < 1.7 * min(task.busy_s for task in last.tasks)


def test_what_waits_too_long_or_does_not_fit_is_dropped_and_kept(
    started: Started, layout: RunLayout
) -> None:
    pipeline = Pipeline("impatient")
    pipeline.topic("old", "id long", external=True)
    pipeline.topic("many", "id long", external=True)
    pipeline.topic("fresh", "id long")
    pipeline.topic("few", "id long")

    @pipeline.batches(reads="old", writes="fresh", timeout_s=1.0, dropped_to="too-old")
    def in_time(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.batches(reads="many", writes="few", queue_size=100)
    def small_queue(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    fill(layout, pipeline, "old", id=list(range(50)))
    fill(layout, pipeline, "many", id=list(range(1000)))
    time.sleep(1.1)
    engine = started.engine(pipeline, layout=layout)
    until(engine, drained(engine))
    assert rows(layout, "fresh") == []
    assert rows(layout, "too-old") == list(range(50))
    assert rows(layout, "few") == list(range(100))
    status = engine.status()
    assert status.dropped_records == 50 + 900
    lost = Counter[str]()
    for event in status.events:
        if isinstance(event, DroppedEvent):
            lost[event.operator] += event.records or 0
    assert lost == {"in_time": 50, "small_queue": 900}


def test_a_function_that_raises_stops_its_operator_alone(
    started: Started, layout: RunLayout
) -> None:
    pipeline = Pipeline("poison")
    pipeline.topic("in", "id long", external=True)
    for name in ("broken", "whole", "careful"):
        pipeline.topic(name, "id long")

    @pipeline.batches(reads="in", writes="broken", chunk_rows=10)
    def breaks(batch: pa.RecordBatch) -> pa.RecordBatch:
        if 13 in batch["id"].to_pylist():
            raise ZeroDivisionError("thirteen")
        return batch

    @pipeline.batches(reads="in", writes="whole")
    def goes_on(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.batches(reads="in", writes="careful", on_error="dead-letter")
    def survives(batch: pa.RecordBatch) -> pa.RecordBatch:
        if any(value % 100 == 13 for value in batch["id"].to_pylist()):
            raise ValueError("unlucky")
        return batch

    fill(layout, pipeline, "in", id=list(range(400)))
    engine = started.engine(pipeline, layout=layout)
    until(engine, lambda: bool(engine.operator_errors))
    until(engine, lambda: len(rows(layout, "whole")) == 400 and len(rows(layout, "careful")) == 396)
    text = engine.operator_errors["breaks"]
    found = re.search(r"failed on rows (\d+) to (\d+) of topic in", text)
    assert found
    assert int(found[1]) <= 13 <= int(found[2]) < int(found[1]) + 10
    assert 'raise ZeroDivisionError("thirteen")' in text
    failures = [event for event in engine.status().events if isinstance(event, FailedEvent)]
    assert [event.operator for event in failures] == ["breaks"]
    assert rows(layout, "broken") == list(range(len(rows(layout, "broken"))))
    assert len(rows(layout, "broken")) <= 13
    assert rows(layout, "survives-errors", "offset") == [13, 113, 213, 313]
    assert rows(layout, "survives-errors", "error") == ["ValueError: unlucky"] * 4
    assert rows(layout, "survives-errors", "row")[0] == '{"id": 13}'


def test_back_pressure_holds_the_operator_in_front(started: Started, layout: RunLayout) -> None:
    pipeline = Pipeline("pressed")
    pipeline.topic("in", "id long", external=True)
    pipeline.topic("between", "id long", keep="1 day")
    pipeline.topic("out", "id long")

    @pipeline.batches(reads="in", writes="between")
    def quick(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.batches(reads="between", writes="out", queue_limit=200, chunk_rows=1)
    def slow(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(0.02 * batch.num_rows)
        return batch

    fill(layout, pipeline, "in", id=list(range(20_000)))
    engine = started.engine(pipeline, layout=layout)
    most = 0.0
    for _ in range(10):
        engine.advance(0.5)
        most = max(most, engine.trackers["slow"].queues[-1][1])
    shown = engine.observe().operators
    held = shown["quick"].backpressured
    assert held is not None
    assert held > 0.3
    assert shown["slow"].backpressured == 0.0  # nothing behind it can be full
    assert (shown["slow"].input_buffer or 0.0) > 0.5
    assert shown["quick"].input_buffer is None
    # one batch may go over the limit; without it all 20,000 rows would wait there
    assert 200 < most < 10_000


@contextmanager
def served_lines(lines: list[str]) -> Iterator[int]:
    """A server on a free port that sends lines to the first who comes, and keeps the line open."""
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with client:
                client.sendall("".join(f"{line}\n" for line in lines).encode())
                stop.wait()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])
        stop.set()


def test_streams_come_in_and_go_out(
    started: Started, layout: RunLayout, tmp_path: Path, spark: SparkSession
) -> None:
    """A clock and a socket; what the clock brings has its event time, and is load for policies."""
    lines = [f"line {number}" for number in range(100)]
    pipeline = Pipeline("open")
    pipeline.topic("ticks", "timestamp timestamp, value long", keep="1 day")
    pipeline.topic("lines", "value string")
    pipeline.topic("doubled", "value long", keep="1 day")

    @pipeline.ingest(writes="ticks", time="timestamp")
    def clock(session: SparkSession) -> DataFrame:
        return session.readStream.format("rate").option("rowsPerSecond", 50).load()

    @pipeline.ingest(writes="lines")
    def listen(session: SparkSession) -> DataFrame:
        reader = session.readStream.format("socket").option("host", "127.0.0.1")
        return reader.option("port", port).load()

    @pipeline.batches(reads="ticks", writes="doubled")
    def double(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        return {"value": pc.multiply(batch["value"], 2)}

    @pipeline.egress(reads="doubled")
    def store(df: DataFrame) -> Any:
        files = df.select("value").writeStream.format("parquet")
        return files.option("path", str(tmp_path / "files"))

    with served_lines(lines) as port:
        engine = started.engine(pipeline, layout=layout)
        until(engine, lambda: positions(layout.topic("doubled")).get("store", 0) > 20)
        until(engine, lambda: len(rows(layout, "lines", "value")) == len(lines))
        until(engine, lambda: bool(engine.status().ingests["clock"].rows))
        # a busy machine may ingest nothing for the length of a window
        until(engine, lambda: engine.observe().offered["double"] > 0)
        snapshot = engine.observe()
        until(engine, lambda: engine.observe().operators["double"].busy is not None)
        decided = [decide(policy, engine.observe()) for policy in POLICIES]
        engine.apply(Plan(replicas={"double": 2}))
        until(engine, lambda: engine.status().running["double"] == 2)
        behind = positions(layout.topic("doubled"))["store"]
        until(engine, lambda: positions(layout.topic("doubled"))["store"] > behind)
        engine.stop()
    assert snapshot.topology.sources == ("double",)
    assert snapshot.offered["double"] > 0
    assert all(set(decision.targets) == {"double"} for decision in decided)
    # Spark deals the lines of a socket to tasks in turn
    assert sorted(rows(layout, "lines", "value")) == sorted(lines)
    assert rows(layout, "ticks", "_event") == rows(layout, "ticks", "timestamp")
    written = [row.value for row in spark.read.parquet(str(tmp_path / "files")).collect()]
    doubled = rows(layout, "doubled", "value")
    assert sorted(doubled) == [2 * n for n in range(len(doubled))]
    assert sorted(written) == sorted(doubled[: len(written)])
    assert len(written) > 20


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda df: df.groupBy("id").count(), "Aggregate"),
        (lambda df: df.select("id").dropDuplicates(), "Deduplicate"),
        (lambda df: df.repartition(3), "Repartition"),
        (lambda df: df.select(df.id.cast("string").alias("id")), "do not fit topic out"),
        (lambda _: 7, "must return a streaming DataFrame"),
    ],
)
def test_frames_that_do_not_fit_are_refused_before_anything_runs(
    spark: SparkSession, layout: RunLayout, function: Callable[[DataFrame], Any], problem: str
) -> None:
    pipeline = Pipeline("wrong")
    pipeline.topic("in", "id long", external=True)
    pipeline.topic("out", "id long")

    @pipeline.operator(reads="in", writes="out")
    def wrong(df: DataFrame) -> Any:
        return function(df)

    with pytest.raises(InputError, match=problem):
        SparkEngine(spark, pipeline, layout).start()
