"""Keyed state beside Spark's own, in one run on one machine: speed, changes of k, size, resume.

A keyed count over rows of 16 bytes (a long, a double) with keys drawn evenly, two replicas, 64
slices. Spark's own count reads the same topic in batches of the same size, keeps its state in
RocksDB (two partitions, changelog checkpoints) and lets the counts go; ours writes them to a
topic. Changes of k happen under a steady load, which two cores carry with any k.

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
import threading
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody writes it)
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from penstock.engines.events import RescaledEvent, RunningEvent
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.port import Plan
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.native_state.repartition import native_settings, settings
from penstock.engines.spark.native_state.rescaler import STEPS
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.keyed_counts import counts
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from sides.timing import commit_gaps, query_rows_per_s, show_step

FEW, MANY, MOST = 100_000, 1_000_000, 10_000_000
ROWS = 40_000_000
CHUNK = 1 << 17
#: A full topic is worked on for so long, unless it is empty before.
MAX_S = 20.0
#: Rows/s while k changes, and rows of a batch while the size of the state is compared.
STEADY, BATCH = 50_000, 100_000
COLUMNS = "key long, v double"
SCHEMA = pa.schema([("key", pa.int64()), ("v", pa.float64())])


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
        spark.dataSource.register(TopicRows)
        start_workers(spark, 6, place / "warming")
        rows = [
            *speed(spark, place),
            *sliced_changes(spark, place),
            *native_changes(spark, place),
            size(spark, place),
        ]
        end_session(spark)
        rows.append(resume_ratio(place))
    print("| figure | measured | aim |\n|---|---|---|")
    for figure, measured, aim in rows:
        print(f"| {figure} | {measured} | {aim} |")
    return 0


# --- what is run


def sliced_count() -> Pipeline:
    """Count by key, state in slices."""
    pipeline = Pipeline("sliced")
    pipeline.topic("in", COLUMNS, external=True, keep="1 day")
    pipeline.sliced("in", "out", name="count", replicas=2, max_replicas=8)(counts(by="key"))
    return pipeline


def native_count() -> Pipeline:
    """Count by key and day, state of Spark's own."""
    pipeline = Pipeline("native")
    pipeline.topic("in", COLUMNS, external=True, keep="1 day")

    @pipeline.native("in", "out", replicas=2, max_replicas=8)
    def count(df: DataFrame) -> DataFrame:
        day = df.withWatermark("_event", "1 hour").groupBy(F.window("_event", "1 day"), "key")
        return day.count().select("key", "count")

    return pipeline


def fill(
    pipeline: Pipeline, layout: RunLayout, keys: int, rows: int, *, each: bool = False
) -> Topic:
    """Put rows into the topic: keys drawn evenly, or each key in turn."""
    make_topics(pipeline, layout)
    topic, rng = Topic.open(layout.topic("in")), np.random.default_rng(1)
    values = pa.array(rng.random(CHUNK))
    with TopicWriter(topic, "bench") as writer:
        for first in range(0, rows, CHUNK):
            count = min(CHUNK, rows - first)
            drawn = np.arange(first, first + count) % keys if each else rng.integers(0, keys, count)
            writer.append(pa.table({"key": drawn, "v": values[:count]}, schema=SCHEMA))
    return topic


class Feeder:
    """Appends rows to the topic at a steady rate while it is entered."""

    def __init__(self, topic: Path, keys: int, rate: float, every_s: float) -> None:
        self._topic, self._keys = Topic.open(topic), keys
        self._rows, self._every_s = int(rate * every_s), every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        rng = np.random.default_rng(2)
        values = pa.array(rng.random(self._rows))
        with TopicWriter(self._topic, "feed") as writer:
            while not self._stop.wait(self._every_s):
                drawn = rng.integers(0, self._keys, self._rows)
                writer.append(pa.table({"key": drawn, "v": values}, schema=SCHEMA))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


def work_off(engine: SparkEngine, within_s: float) -> None:
    """Let everything that waits be processed."""
    began = time.monotonic()
    while not engine.is_drained and time.monotonic() < began + within_s:
        engine.advance(0.25)
        assert not engine.operator_errors, engine.operator_errors


def records_of(engine: SparkEngine, first: int = 0) -> list[BatchRecord]:
    """The records from a batch on, but for those of batches that only dealt state anew."""
    log = engine.trackers["count"].log
    found = (log.get(number) for number in range(first, log.next))
    return [record for record in found if record is not None and record.tasks]


# --- rows a second


def speed(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """A keyed count of ours, and Spark's own on the same topic."""
    for keys in (FEW, MANY):
        show_step(f"counting, {keys:,} keys")
        layout = RunLayout(place / f"speed-{keys}")
        topic = fill(sliced_count(), layout, keys, ROWS)
        engine = SparkEngine(spark, sliced_count(), layout)
        engine.start()
        work_off(engine, MAX_S)
        engine.stop()
        records = records_of(engine)
        usual = max(record.rows_in for record in records)
        full = [(a, b) for a, b in pairwise(records) if b.rows_in > 0.4 * usual]
        seconds = sum(b.committed_at - a.committed_at for a, b in full)
        ours = sum(record.rows_in for _, record in full) / seconds
        theirs = plain_rate(spark, place / f"plain-{keys}", topic.directory, usual)
        shutil.rmtree(layout.run)
        yield (
            f"sliced count / Spark's own `groupBy().count()`, {keys:,} keys",
            f"**{ours / theirs:.2f}** ({ours / 1e6:.2f} / {theirs / 1e6:.2f} M rows/s)",
            ">= 1.5",
        )


def plain_rate(spark: SparkSession, place: Path, topic: Path, size: int) -> float:
    """Rows a second of Spark's own count, after its first batches."""
    show_step("Spark's own count")
    options = {"topic": str(topic), "rows": str(size)}
    counted = spark.readStream.format("topic-rows").options(**options).load().groupBy("key").count()
    writer = counted.writeStream.format("noop").outputMode("update")
    with settings(spark, native_settings(2)):
        query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    return query_rows_per_s(query, 8, 90)


class TopicRows(DataSource):
    """The rows of a topic over and over, two partitions a batch, for plain queries."""

    @classmethod
    def name(cls) -> str:
        return "topic-rows"

    def schema(self) -> str:
        return COLUMNS

    def streamReader(self, schema: Any) -> "TopicRowsReader":  # noqa: N802, ARG002
        return TopicRowsReader(self.options["topic"], int(self.options["rows"]))


class TopicRowsReader(DataSourceStreamReader):
    """Always has one more batch: behind the end of the topic comes its beginning."""

    def __init__(self, topic: str, rows: int) -> None:
        self.topic, self.rows, self.at = topic, rows, 0

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
        topic = Topic.open(Path(self.topic))
        while low < high:
            begin = low % topic.end
            end = min(begin + high - low, topic.end)
            for batch in topic.read(begin, end, SCHEMA.names):
                yield pa.RecordBatch.from_arrays(batch.columns, schema=SCHEMA)
            low += end - begin


# --- changes of k


def sliced_changes(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """Change k of a sliced count under a steady load."""
    for keys in (FEW, MANY):
        show_step(f"changes of k, sliced, {keys:,} keys")
        layout = RunLayout(place / f"sliced-{keys}")
        fill(sliced_count(), layout, keys, keys, each=True)
        engine = SparkEngine(spark, sliced_count(), layout)
        engine.start()
        work_off(engine, 60)
        with Feeder(layout.topic("in"), keys, STEADY, 0.1):
            engine.advance(6)
            first = engine.trackers["count"].log.next
            for k in (6, 3, 8, 2, 5, 1, 4, 2):
                engine.apply(Plan(replicas={"count": k}))
                engine.advance(4)
        engine.stop()
        around, usual = commit_gaps(records_of(engine, first))
        shutil.rmtree(layout.run)
        yield (
            f"longest gap between commits around a change of k / usual gap, sliced, {keys:,} keys",
            f"**{max(around) / usual:.2f}** ({max(around):.2f} / {usual:.2f} s)",
            "<= 1.5",
        )


def native_changes(spark: SparkSession, place: Path) -> Iterator[tuple[str, str, str]]:
    """Change k of a count with Spark's own state; what each step takes."""
    for keys in (FEW, MANY):
        show_step(f"changes of k, native, {keys:,} keys")
        layout = RunLayout(place / f"native-{keys}")
        fill(native_count(), layout, keys, keys, each=True)
        engine = SparkEngine(spark, native_count(), layout)
        engine.start()
        work_off(engine, 120)
        steps: list[RescaledEvent] = []
        after: list[float] = []
        with Feeder(layout.topic("in"), keys, STEADY / 5, 0.1):
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
            f"{step} {statistics.median(getattr(one, f'{step}_s') for one in steps):.2f}"
            for step in STEPS
        )
        rows = max(one.state_rows or 0 for one in steps)
        yield (
            f"hold to first batch at the new k, native, {rows:,} rows of state",
            f"**{statistics.median(after):.2f} s** ({each})",
            "measured",
        )


# --- how large the state is


def size(spark: SparkSession, place: Path) -> tuple[str, str, str]:
    """Batches of the same rows over little and much state."""
    seconds, longest = {}, {}
    for keys in (FEW, MOST):
        show_step(f"batches of {BATCH:,} rows, {keys:,} keys")
        layout = RunLayout(place / f"size-{keys}")
        fill(sliced_count(), layout, keys, keys, each=True)
        engine = SparkEngine(spark, sliced_count(), layout)
        engine.start()
        work_off(engine, 240)
        first = engine.trackers["count"].log.next
        with Feeder(layout.topic("in"), keys, BATCH, 1.0):
            engine.advance(30)
        engine.stop()
        full = [r for r in records_of(engine, first) if BATCH <= r.rows_in < 2 * BATCH]
        took = [record.committed_at - record.planned_at for record in full]
        seconds[keys], longest[keys] = statistics.median(took), max(took)
        shutil.rmtree(layout.run)
    return (
        f"batch of {BATCH:,} rows at {MOST:,} keys / at {FEW:,} keys",
        f"**{seconds[MOST] / seconds[FEW]:.2f}** ({seconds[MOST]:.2f} / {seconds[FEW]:.2f} s;"
        f" the longest {longest[MOST]:.2f} / {longest[FEW]:.2f} s)",
        "<= 3",
    )


# --- after a kill


def resume_ratio(place: Path) -> tuple[str, str, str]:
    """Kill a driver that holds much or little state, and start it again."""
    took = {}
    for keys in (1000, MANY):
        show_step(f"resume after kill -9, {keys:,} keys")
        layout = RunLayout(place / f"resume-{keys}")
        fill(sliced_count(), layout, keys, keys, each=True)
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
        "measured; state is mapped, not replayed",
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
    raise RuntimeError(f"the driver left before it was {state}")


def run_resumed(run: Path) -> int:
    """Run the count, tell when everything is processed, and wait for the end."""
    layout = RunLayout(run)
    spark = start_session("bench", 8, layout.log)
    began = time.monotonic()
    engine = SparkEngine(spark, sliced_count(), layout)
    engine.start()
    work_off(engine, 120)
    message = {"state": "drained", "since_session_s": round(time.monotonic() - began, 2)}
    print(json.dumps(message), flush=True)
    time.sleep(600)
    return 1


if __name__ == "__main__":
    sys.exit(main())
