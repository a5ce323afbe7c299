"""What the runtime on Spark costs beside plain Structured Streaming, in one run on one machine.

Rows are 16 bytes (a long, a double), two replicas, batches of about a second. A hop writes rows
to a topic and reads them again; plain queries have none. Operators that wait stand for calls to
a service: two cores cannot show sixteen busy replicas.

    python benchmarks/spark.py
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, run_loop
from penstock.control.registry import find_policy
from penstock.core.guards import Guards
from penstock.demos import images
from penstock.engines.events import RunningEvent
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.port import Plan
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from sides.timing import commit_gaps, query_rows_per_s, show_step

ROWS = 80_000_000
#: A full topic is worked on for so long, unless it is empty before.
MAX_S = 15.0
CHUNK = 1 << 16
WAIT_S = 0.02
PHOTOS = 40_000
COLUMNS = "id long, v double"
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64())])


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
        place = Path(home)
        spark = start_session("bench", 24, place / "spark.log")
        spark.dataSource.register(Generator)
        start_workers(spark, 18, place / "warming")
        rows = [
            *throughput(spark, place),
            *elasticity(spark, place),
            own_cost(spark, place),
        ]
        end_session(spark)
    print("| figure | measured | aim |\n|---|---|---|")
    for figure, measured, aim in rows:
        print(f"| {figure} | {measured} | {aim} |")
    return 0


# --- rows a second


def throughput(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """A fused and a frame operator through topics, each beside the query without topics."""
    show_step("filling a topic")
    full = _filled(place / "full", ROWS)
    fused, size = topic_rate(spark, place / "fused", full, _fused())
    plain = plain_rate(spark, place / "plain", size, lambda df: df)
    topic_rate(spark, place / "frame-first", full, _frame())  # until the JVM has compiled it
    frame, size = topic_rate(spark, place / "frame", full, _frame())
    plain_frame = plain_rate(spark, place / "plain-frame", size, _doubled)
    kept = plain_rate(spark, place / "parquet", size, _doubled, "parquet")
    yield (
        "batch operator through topics / plain generator -> noop",
        f"**{fused / plain:.2f}** ({fused / 1e6:.2f} / {plain / 1e6:.2f} M rows/s)",
        ">= 0.9",
    )
    yield (
        "frame operator through topics / the same query without topics",
        f"**{frame / plain_frame:.2f}** ({frame / 1e6:.2f} / {plain_frame / 1e6:.2f} M rows/s)",
        ">= 0.6",
    )
    yield (
        "the same beside a plain query that keeps its rows in Parquet files",
        f"**{frame / kept:.2f}** ({frame / 1e6:.2f} / {kept / 1e6:.2f} M rows/s)",
        "said",
    )
    hop = (1 / frame - 1 / plain_frame) * 1e9
    yield "what a hop costs a row on two cores, frame operator", f"{hop:.0f} ns", "said"


def _fused() -> Pipeline:
    pipeline = _pipeline("fused")

    @pipeline.batches(reads="in", writes="out", replicas=2)
    def double(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        return {"id": batch["id"], "v": pc.multiply(batch["v"], 2.0)}

    return pipeline


def _frame() -> Pipeline:
    pipeline = _pipeline("frame")

    @pipeline.operator(reads="in", writes="out", replicas=2)
    def double(df: DataFrame) -> DataFrame:
        return _doubled(df)

    return pipeline


def _doubled(df: DataFrame) -> DataFrame:
    return df.select("id", (df.v * 2).alias("v"))


def _pipeline(name: str) -> Pipeline:
    pipeline = Pipeline(name)
    pipeline.topic("in", COLUMNS, external=True, keep="1 day")
    pipeline.topic("out", COLUMNS, keep="1 day")
    return pipeline


def _filled(run: Path, rows: int) -> Path:
    """A topic full of rows, in segments as a producer writes them."""
    topic = Topic.create(RunLayout(run).topic("in"), SCHEMA)
    values = np.random.default_rng(1).random(CHUNK)
    with TopicWriter(topic, "bench") as writer:
        for first in range(0, rows, 16 * CHUNK):
            parts = [
                pa.record_batch(
                    [pa.array(np.arange(n, n + CHUNK)), pa.array(values)], schema=SCHEMA
                )
                for n in range(first, min(first + 16 * CHUNK, rows), CHUNK)
            ]
            writer.append(pa.Table.from_batches(parts))
    return topic.directory


def topic_rate(
    spark: SparkSession, run: Path, topic: Path, pipeline: Pipeline
) -> tuple[float, int]:
    """Rows a second of an operator on a full topic, and rows of a full batch."""
    layout = RunLayout(run)
    layout.topic("in").parent.mkdir(parents=True)
    layout.topic("in").symlink_to(topic)
    show_step(f"{run.name} operator through topics")
    records = _work_off(SparkEngine(spark, pipeline, layout))
    usual = max(record.rows_in for record in records)
    # batches grow until they last as long as they shall; the last one may be a rest
    full = [(a, b) for a, b in pairwise(records) if b.rows_in > 0.4 * usual]
    rows = sum(record.rows_in for _, record in full)
    return rows / sum(b.committed_at - a.committed_at for a, b in full), usual


def _work_off(engine: SparkEngine) -> list[BatchRecord]:
    engine.start()
    (one,) = engine.trackers.values()
    while not engine.is_drained and not engine.operator_errors and engine.at < MAX_S:
        engine.advance(0.5)
    engine.stop()
    assert not engine.operator_errors, engine.operator_errors
    return [record for n in range(one.log.next) if (record := one.log.get(n)) is not None]


def plain_rate(
    spark: SparkSession,
    place: Path,
    size: int,
    shape: Callable[[DataFrame], DataFrame],
    sink: str = "noop",
) -> float:
    """Rows a second of a Python source and one of Spark's own sinks, batches of the same size."""
    show_step(f"{place.name} query")
    made = spark.readStream.format("generator").option("rows", str(size)).load()
    writer = shape(made).writeStream.format(sink).option("path", str(place / "rows"))
    query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    return query_rows_per_s(query, 10)


class Generator(DataSource):
    """Rows out of nothing, two partitions a batch."""

    @classmethod
    def name(cls) -> str:
        return "generator"

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: Any) -> "GeneratorReader":  # noqa: N802, ARG002
        return GeneratorReader(int(self.options["rows"]))


class GeneratorReader(DataSourceStreamReader):
    """Always has one more batch."""

    def __init__(self, rows: int) -> None:
        self.rows, self.at = rows, 0

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def latestOffset(self) -> dict[str, int]:  # type: ignore[override]  # noqa: N802
        self.at += self.rows
        return {"at": self.at}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        middle = (start["at"] + end["at"]) // 2
        return [InputPartition((start["at"], middle)), InputPartition((middle, end["at"]))]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        low, high = partition.value
        values = np.random.default_rng(1).random(CHUNK)
        for first in range(low, high, CHUNK):
            ids = np.arange(first, min(first + CHUNK, high))
            yield pa.RecordBatch.from_arrays(
                [pa.array(ids), pa.array(values[: len(ids)])], schema=SCHEMA
            )


# --- changes of k


def elasticity(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """An operator that waits: changes of k, and how far replicas carry."""
    show_step("changes of k")
    run = place / "waits"
    _filled(run, 1 << 18)
    engine = SparkEngine(spark, _waiting(), RunLayout(run))
    engine.start()
    engine.advance(6)
    changes: list[RunningEvent] = []
    engine.status()
    for k in (6, 3, 10, 4, 12, 2, 8):
        engine.apply(Plan(replicas={"wait": k}))
        engine.advance(6)
        changes += [e for e in engine.status().events if isinstance(e, RunningEvent)]
    rates = {k: _settled_rate(engine, k) for k in (1, 16)}
    engine.stop()
    log = engine.trackers["wait"].log
    records = [record for n in range(log.next) if (record := log.get(n)) is not None]
    around, usual = commit_gaps(records)
    yield (
        "longest gap between commits around a change of k / usual gap",
        f"**{max(around) / usual:.2f}** ({max(around):.2f} / {usual:.2f} s)",
        "<= 1.5",
    )
    batches = [change.batches or 0 for change in changes]
    seconds = [change.after_s or 0.0 for change in changes]
    yield (
        "decision to first batch at the new k",
        f"**{max(batches)} batches** at most, {statistics.median(seconds):.2f} s in the middle",
        "<= 2 batches",
    )
    linear = rates[16] / (16 * rates[1])
    yield (
        "operator that waits 20 ms, 16 replicas / linear",
        f"**{linear:.2f}** ({rates[16]:.0f} / 16 x {rates[1]:.1f} rows/s)",
        ">= 0.8",
    )


def _waiting() -> Pipeline:
    pipeline = _pipeline("waits")

    @pipeline.batches(reads="in", writes="out", replicas=2, max_replicas=16)
    def wait(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(WAIT_S * batch.num_rows)
        return batch

    return pipeline


def _settled_rate(engine: SparkEngine, k: int) -> float:
    engine.apply(Plan(replicas={"wait": k}))
    engine.advance(5)
    one = engine.trackers["wait"]
    first = one.log.next
    engine.advance(10)
    records = [record for n in range(first - 1, one.log.next) if (record := one.log.get(n))]
    rows = sum(record.rows_in for record in records[1:])
    return rows / (records[-1].committed_at - records[0].committed_at)


# --- what the loop costs


def own_cost(spark: SparkSession, place: Path) -> tuple[str, str, str]:
    """Processor time of this process, loop and monitor, beside all that the images need."""
    show_step("the loop's own cost")
    pipeline, layout = images.build(service_s=WAIT_S), RunLayout(place / "own")
    photos = pipeline.topics["photos"]
    topic = Topic.create(layout.topic("photos"), photos.schema)
    with TopicWriter(topic, "bench") as writer:
        for first in range(0, PHOTOS, 1000):
            due = pa.array([0] * 1000, pa.timestamp("us", "UTC"))
            writer.append(pipeline.feeds["photos"].make(first, due))
    engine = SparkEngine(spark, pipeline, layout)
    engine.start()
    own, before = time.process_time(), _tree_s()
    policy = find_policy("ds2")
    decider = Decider(policy, policy.params(), Guards.parse({"cooldown_s": 6}, "guard"))
    for _ in run_loop(engine, decider, LoopSchedule(duration_s=30, interval_s=2)):
        pass
    # a worker that has ended since counts for nothing, so that the share is rather too large
    whole = sum(seconds - before.get(pid, 0.0) for pid, seconds in _tree_s().items())
    share = (time.process_time() - own) / whole
    engine.stop()
    return (
        "the loop's and the monitor's own part of all processor time, images",
        f"**{share:.1%}**",
        "<= 3 %",
    )


def _tree_s() -> dict[int, float]:
    """Processor seconds of this process and of each below it."""
    parents, seconds = {}, {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
            seconds[int(entry.name)] = sum(int(n) for n in fields[11:13]) / os.sysconf("SC_CLK_TCK")
    mine, grew = {os.getpid()}, True
    while grew:
        more = {pid for pid, parent in parents.items() if parent in mine} - mine
        grew, mine = bool(more), mine | more
    return {pid: seconds[pid] for pid in mine}


if __name__ == "__main__":
    sys.exit(main())
