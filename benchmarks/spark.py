"""What the runtime on Spark costs beside plain Structured Streaming, in one run on one machine.

Rows are 16 bytes (a long, a double), two replicas, batches of about a second. A hop writes rows
to a topic and reads them again; plain queries have none. Operators that wait emulate calls to a
service: two cores cannot run sixteen busy replicas.

    python benchmarks/spark.py
"""

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, run_loop
from penstock.control.registry import find_policy
from penstock.core.guards import Guards
from penstock.demos import images
from penstock.engines.events import RunningEvent
from penstock.engines.port import Plan
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from sides.engine_batches import (
    drain,
    link_topics,
    next_batch,
    read_records,
    rows_per_s,
    select_full,
    time_batches,
)
from sides.plain_sources import CHUNK, COLUMNS, GeneratedRows
from sides.timing import commit_gaps, query_rows_per_s, show_step

ROWS = 80_000_000
#: A full topic is read for this long, unless it is empty before.
MAX_S = 15.0
WAIT_S = 0.02
PHOTOS = 40_000
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64())])


def main() -> int:
    """Print the table."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
        place = Path(home)
        spark = start_session("bench", 24, place / "spark.log")
        spark.dataSource.register(GeneratedRows)
        start_workers(spark, 18, place / "warming")
        rows = [
            *measure_throughput(spark, place),
            *measure_changes(spark, place),
            measure_loop(spark, place),
        ]
        end_session(spark)
    print("| figure | measured | aim |\n|---|---|---|")
    for figure, measured, aim in rows:
        print(f"| {figure} | {measured} | {aim} |")
    return 0


# --- rows per second


def measure_throughput(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """Compare a batch and a frame operator through topics with the query without topics."""
    show_step("filling a topic")
    full = _fill_topic(place / "full", ROWS)
    fused, size = topic_rate(spark, place / "fused", full, _fused())
    plain = plain_rate(spark, place / "plain", size, lambda df: df)
    topic_rate(spark, place / "frame-first", full, _frame())  # until the JVM has compiled it
    frame, size = topic_rate(spark, place / "frame", full, _frame())
    plain_frame = plain_rate(spark, place / "plain-frame", size, _double)
    parquet = plain_rate(spark, place / "parquet", size, _double, "parquet")
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
        "frame operator through topics / plain query that writes Parquet files",
        f"**{frame / parquet:.2f}** ({frame / 1e6:.2f} / {parquet / 1e6:.2f} M rows/s)",
        "none",
    )
    hop = (1 / frame - 1 / plain_frame) * 1e9
    yield "cost of a hop per row on two cores, frame operator", f"{hop:.0f} ns", "none"


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
        return _double(df)

    return pipeline


def _double(df: DataFrame) -> DataFrame:
    return df.select("id", (df.v * 2).alias("v"))


def _pipeline(name: str) -> Pipeline:
    pipeline = Pipeline(name)
    pipeline.topic("in", COLUMNS, external=True, keep="1 day")
    pipeline.topic("out", COLUMNS, keep="1 day")
    return pipeline


def _fill_topic(run: Path, rows: int) -> Path:
    """Fill a topic, in segments as a producer writes them."""
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
    """Return the rows per second of an operator on a full topic, and the rows of a full batch."""
    show_step(f"{run.name} operator through topics")
    engine = SparkEngine(spark, pipeline, link_topics(run, [topic]))
    engine.start()
    drain(engine, MAX_S)
    engine.stop()
    (operator,) = pipeline.operators
    records = read_records(engine, operator)
    # batches grow until they last about a second; the last one may be a rest
    full = select_full(time_batches(records), 0.4)
    return rows_per_s(full), max(record.rows_in for record in records)


def plain_rate(
    spark: SparkSession,
    place: Path,
    size: int,
    shape: Callable[[DataFrame], DataFrame],
    sink: str = "noop",
) -> float:
    """Return the rows per second of a Python source and a sink of Spark, with batches of `size`."""
    show_step(f"{place.name} query")
    rows = spark.readStream.format(GeneratedRows.name()).option("rows", str(size)).load()
    writer = shape(rows).writeStream.format(sink).option("path", str(place / "rows"))
    query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    return query_rows_per_s(query, 10)


# --- changes of k


def measure_changes(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """Change k of an operator that waits, and compare its throughput with linear scaling."""
    show_step("changes of k")
    run = place / "waits"
    _fill_topic(run, 1 << 18)
    engine = SparkEngine(spark, _waiting(), RunLayout(run))
    engine.start()
    engine.advance(6)
    changes: list[RunningEvent] = []
    engine.status()
    for k in (6, 3, 10, 4, 12, 2, 8):
        engine.apply(Plan(replicas={"wait": k}))
        engine.advance(6)
        changes += [e for e in engine.status().events if isinstance(e, RunningEvent)]
    rates = {k: _measure_rate(engine, k) for k in (1, 16)}
    engine.stop()
    around, usual = commit_gaps(read_records(engine, "wait"))
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


def _measure_rate(engine: SparkEngine, k: int) -> float:
    engine.apply(Plan(replicas={"wait": k}))
    engine.advance(5)
    first = next_batch(engine, "wait")
    engine.advance(10)
    return rows_per_s(time_batches(read_records(engine, "wait", first - 1)))


# --- cost of the loop


def measure_loop(spark: SparkSession, place: Path) -> tuple[str, str, str]:
    """Compare the processor time of loop and monitor with that of the whole run of `images`."""
    show_step("cost of the loop")
    pipeline, layout = images.build(service_s=WAIT_S), RunLayout(place / "own")
    photos = pipeline.topics["photos"]
    topic = Topic.create(layout.topic("photos"), photos.schema)
    with TopicWriter(topic, "bench") as writer:
        for first in range(0, PHOTOS, 1000):
            due = pa.array([0] * 1000, pa.timestamp("us", "UTC"))
            writer.append(pipeline.feeds["photos"].make(first, due))
    engine = SparkEngine(spark, pipeline, layout)
    engine.start()
    own, before = time.process_time(), _processor_s_by_pid()
    policy = find_policy("ds2")
    decider = Decider(policy, policy.params(), Guards.parse({"cooldown_s": 6}, "guard"))
    for _ in run_loop(engine, decider, LoopSchedule(duration_s=30, interval_s=2)):
        pass
    # workers that have ended are not counted, so the share is an upper bound
    whole = sum(seconds - before.get(pid, 0.0) for pid, seconds in _processor_s_by_pid().items())
    share = (time.process_time() - own) / whole
    engine.stop()
    return (
        "share of loop and monitor in all processor time, images",
        f"**{share:.1%}**",
        "<= 3 %",
    )


def _processor_s_by_pid() -> dict[int, float]:
    """Return the processor seconds of this process and of each of its descendants."""
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
