"""Keyed state beside Spark's own, in one run on one machine: speed, changes of k, size, resume.

A keyed count over rows of 16 bytes (a long, a double) with keys drawn evenly, two replicas, 64
slices. Spark's own count reads the same topic in batches of the same size, keeps its state in
RocksDB (two partitions, changelog checkpoints) and discards the counts; ours writes them to a
topic. Changes of k happen under a steady load that two cores carry with any k.

    python benchmarks/state.py
"""

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import SparkSession

from penstock.engines.events import RescaledEvent, RunningEvent
from penstock.engines.port import Plan
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.native_state.repartition import native_settings, settings
from penstock.engines.spark.native_state.rescaler import STEPS
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from sides.engine_batches import (
    drain,
    next_batch,
    read_records,
    rows_per_s,
    select_full,
    time_batches,
)
from sides.keyed_count import SCHEMA, KeyFeeder, fill, native_count, sliced_count
from sides.plain_sources import RepeatedTopicRows
from sides.timing import commit_gaps, query_rows_per_s, show_step

#: Numbers of keys.
FEW, MANY, VERY_MANY = 100_000, 1_000_000, 10_000_000
ROWS = 40_000_000
#: A full topic is read for this long, unless it is empty before.
MAX_S = 20.0
#: Rows/s while k changes, and rows of a batch while sizes of the state are compared.
STEADY, BATCH = 50_000, 100_000


def main() -> int:
    """Print the table, or be the process that is killed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--resume", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.resume is not None:
        return run_resumed(args.resume)
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
        place = Path(home)
        spark = start_session("bench", 12, place / "spark.log")
        spark.dataSource.register(RepeatedTopicRows)
        start_workers(spark, 6, place / "warming")
        rows = [
            *measure_speed(spark, place),
            *measure_sliced_changes(spark, place),
            *measure_native_changes(spark, place),
            measure_state_size(spark, place),
        ]
        end_session(spark)
        rows.append(measure_resume(place))
    print("| figure | measured | aim |\n|---|---|---|")
    for figure, measured, aim in rows:
        print(f"| {figure} | {measured} | {aim} |")
    return 0


# --- rows per second


def measure_speed(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """Compare a keyed count of ours with Spark's own on the same topic."""
    for keys in (FEW, MANY):
        show_step(f"counting, {keys:,} keys")
        layout = RunLayout(place / f"speed-{keys}")
        topic = fill(sliced_count(), layout, keys, ROWS)
        engine = SparkEngine(spark, sliced_count(), layout)
        engine.start()
        drain(engine, MAX_S)
        engine.stop()
        records = read_records(engine, "count")
        usual = max(record.rows_in for record in records)
        ours = rows_per_s(select_full(time_batches(records), 0.4))
        theirs = plain_rate(spark, place / f"plain-{keys}", topic.directory, usual)
        shutil.rmtree(layout.run)
        yield (
            f"sliced count / Spark's own `groupBy().count()`, {keys:,} keys",
            f"**{ours / theirs:.2f}** ({ours / 1e6:.2f} / {theirs / 1e6:.2f} M rows/s)",
            ">= 1.5",
        )


def plain_rate(spark: SparkSession, place: Path, topic: Path, size: int) -> float:
    """Return the rows per second of Spark's own count, after its first batches."""
    show_step("Spark's own count")
    options = {"topic": str(topic), "rows": str(size)}
    rows = spark.readStream.format(RepeatedTopicRows.name()).options(**options).load()
    writer = rows.groupBy("key").count().writeStream.format("noop").outputMode("update")
    with settings(spark, native_settings(2)):
        query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    return query_rows_per_s(query, 8, 90)


# --- changes of k


def measure_sliced_changes(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """Change k of a sliced count under a steady load."""
    for keys in (FEW, MANY):
        show_step(f"changes of k, sliced, {keys:,} keys")
        layout = RunLayout(place / f"sliced-{keys}")
        fill(sliced_count(), layout, keys, keys, in_turn=True)
        engine = SparkEngine(spark, sliced_count(), layout)
        engine.start()
        drain(engine, 60)
        with KeyFeeder(layout.topic("in"), keys, STEADY, 0.1):
            engine.advance(6)
            first = next_batch(engine, "count")
            for k in (6, 3, 8, 2, 5, 1, 4, 2):
                engine.apply(Plan(replicas={"count": k}))
                engine.advance(4)
        engine.stop()
        around, usual = commit_gaps(read_records(engine, "count", first))
        shutil.rmtree(layout.run)
        yield (
            f"longest gap between commits around a change of k / usual gap, sliced, {keys:,} keys",
            f"**{max(around) / usual:.2f}** ({max(around):.2f} / {usual:.2f} s)",
            "<= 1.5",
        )


def measure_native_changes(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """Change k of a count with Spark's own state, and time each step."""
    for keys in (FEW, MANY):
        show_step(f"changes of k, native, {keys:,} keys")
        layout = RunLayout(place / f"native-{keys}")
        fill(native_count(), layout, keys, keys, in_turn=True)
        engine = SparkEngine(spark, native_count(), layout)
        engine.start()
        drain(engine, 120)
        steps: list[RescaledEvent] = []
        after: list[float] = []
        with KeyFeeder(layout.topic("in"), keys, STEADY / 5, 0.1):
            for k in (4, 2, 3):
                engine.apply(Plan(replicas={"count": k}))
                while len(after) < len(steps) + 1:
                    engine.advance(0.25)
                    events = engine.status().events
                    steps += [e for e in events if isinstance(e, RescaledEvent)]
                    after += [e.after_s or 0.0 for e in events if isinstance(e, RunningEvent)]
                    assert not engine.operator_errors, engine.operator_errors
                    if len(after) == len(steps) and steps and steps[-1].replicas == k:
                        break
                engine.advance(3)
        engine.stop()
        shutil.rmtree(layout.run)
        each = ", ".join(
            f"{step} {statistics.median(getattr(event, f'{step}_s') for event in steps):.2f}"
            for step in STEPS
        )
        rows = max(event.state_rows or 0 for event in steps)
        yield (
            f"hold to first batch at the new k, native, {rows:,} rows of state",
            f"**{statistics.median(after):.2f} s** ({each})",
            "none",
        )


# --- size of the state


def measure_state_size(spark: SparkSession, place: Path) -> tuple[str, str, str]:
    """Compare batches of the same size over little and much state."""
    seconds, longest = {}, {}
    for keys in (FEW, VERY_MANY):
        show_step(f"batches of {BATCH:,} rows, {keys:,} keys")
        layout = RunLayout(place / f"size-{keys}")
        fill(sliced_count(), layout, keys, keys, in_turn=True)
        engine = SparkEngine(spark, sliced_count(), layout)
        engine.start()
        drain(engine, 240)
        first = next_batch(engine, "count")
        with KeyFeeder(layout.topic("in"), keys, BATCH, 1.0):
            engine.advance(30)
        engine.stop()
        full = [r for r in read_records(engine, "count", first) if BATCH <= r.rows_in < 2 * BATCH]
        took = [record.committed_at - record.planned_at for record in full]
        seconds[keys], longest[keys] = statistics.median(took), max(took)
        shutil.rmtree(layout.run)
    return (
        f"batch of {BATCH:,} rows at {VERY_MANY:,} keys / at {FEW:,} keys",
        f"**{seconds[VERY_MANY] / seconds[FEW]:.2f}**"
        f" ({seconds[VERY_MANY]:.2f} / {seconds[FEW]:.2f} s;"
        f" the longest {longest[VERY_MANY]:.2f} / {longest[FEW]:.2f} s)",
        "<= 3",
    )


# --- resume after a kill


def measure_resume(place: Path) -> tuple[str, str, str]:
    """Kill a driver with much or little state, and start it again."""
    took = {}
    for keys in (1000, MANY):
        show_step(f"resume after kill -9, {keys:,} keys")
        layout = RunLayout(place / f"resume-{keys}")
        fill(sliced_count(), layout, keys, keys, in_turn=True)
        first = _child(layout)
        _wait_for_state(first, "drained")
        os.kill(first.pid, signal.SIGKILL)
        first.wait()
        with TopicWriter(Topic.open(layout.topic("in")), "bench") as writer:
            writer.append(pa.table({"key": [1], "v": [1.0]}, schema=SCHEMA))
        again = _child(layout)
        took[keys] = _wait_for_state(again, "drained")["since_session_s"]
        again.kill()
        again.wait()
    return (
        f"session to first batch after kill -9, {MANY:,} keys / 1,000 keys",
        f"**{took[MANY] / took[1000]:.2f}** ({took[MANY]:.1f} / {took[1000]:.1f} s)",
        "none; state is mapped, not replayed",
    )


def _child(layout: RunLayout) -> subprocess.Popen[str]:
    command = [sys.executable, __file__, "--resume", str(layout.run)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _wait_for_state(child: "subprocess.Popen[str]", state: str) -> dict[str, Any]:
    assert child.stdout is not None
    for line in child.stdout:
        message: dict[str, Any] = json.loads(line)
        if message["state"] == state:
            return message
    raise RuntimeError(f"the driver ended before it was {state}")


def run_resumed(run: Path) -> int:
    """Run the count, print when everything is processed, and wait to be killed."""
    layout = RunLayout(run)
    spark = start_session("bench", 8, layout.log)
    began = time.monotonic()
    engine = SparkEngine(spark, sliced_count(), layout)
    engine.start()
    drain(engine, 120)
    message = {"state": "drained", "since_session_s": round(time.monotonic() - began, 2)}
    print(json.dumps(message), flush=True)
    time.sleep(600)
    return 1


if __name__ == "__main__":
    sys.exit(main())
