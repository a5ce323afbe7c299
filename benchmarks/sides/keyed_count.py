"""A count by key, with state in slices or in Spark, and the topic that it reads."""

import threading
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812  (the usual name)

from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.keyed_counts import counts
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter

COLUMNS = "key long, v double"
SCHEMA = pa.schema([("key", pa.int64()), ("v", pa.float64())])
CHUNK = 1 << 17


def sliced_count() -> Pipeline:
    """Count by key, with state in slices."""
    pipeline = Pipeline("sliced")
    pipeline.topic("in", COLUMNS, external=True, keep="1 day")
    pipeline.sliced("in", "out", name="count", replicas=2, max_replicas=8)(counts(by="key"))
    return pipeline


def native_count() -> Pipeline:
    """Count by key and day, with Spark's own state."""
    pipeline = Pipeline("native")
    pipeline.topic("in", COLUMNS, external=True, keep="1 day")

    @pipeline.native("in", "out", replicas=2, max_replicas=8)
    def count(df: DataFrame) -> DataFrame:
        day = df.withWatermark("_event", "1 hour").groupBy(F.window("_event", "1 day"), "key")
        return day.count().select("key", "count")

    return pipeline


def fill(
    pipeline: Pipeline, layout: RunLayout, keys: int, rows: int, *, in_turn: bool = False
) -> Topic:
    """Write rows to the topic: keys drawn evenly, or each key in turn."""
    make_topics(pipeline, layout)
    topic, rng = Topic.open(layout.topic("in")), np.random.default_rng(1)
    values = pa.array(rng.random(CHUNK))
    with TopicWriter(topic, "bench") as writer:
        for first in range(0, rows, CHUNK):
            count = min(CHUNK, rows - first)
            if in_turn:
                drawn = np.arange(first, first + count) % keys
            else:
                drawn = rng.integers(0, keys, count)
            writer.append(pa.table({"key": drawn, "v": values[:count]}, schema=SCHEMA))
    return topic


class KeyFeeder:
    """Appends rows with random keys at a steady rate while the `with` block runs."""

    def __init__(self, topic: Path, keys: int, rows_per_s: float, interval_s: float) -> None:
        self._topic, self._keys = Topic.open(topic), keys
        self._rows, self._interval_s = int(rows_per_s * interval_s), interval_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        rng = np.random.default_rng(2)
        values = pa.array(rng.random(self._rows))
        with TopicWriter(self._topic, "feed") as writer:
            while not self._stop.wait(self._interval_s):
                drawn = rng.integers(0, self._keys, self._rows)
                writer.append(pa.table({"key": drawn, "v": values}, schema=SCHEMA))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
