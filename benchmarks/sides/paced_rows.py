"""Rows that arrive at a steady rate, and the delay from when they were due to their commit."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.schema import EVENT

COLUMNS = "id long, v double"
SCHEMA = pa.schema([("id", pa.int64()), ("v", pa.float64())])
_STAMP = pa.timestamp("us", "UTC")
#: Seconds between two commits of the producer.
APPEND_S = 0.05


class PacedFeeder:
    """Appends rows at a rate while the `with` block runs; each is due at its own moment."""

    def __init__(self, topic: Path, rows_per_s: float) -> None:
        self._topic, self._rate = Topic.open(topic), rows_per_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        began, sent = time.time(), 0
        with TopicWriter(self._topic, "feed") as writer:
            while not self._stop.wait(APPEND_S):
                due = int((time.time() - began) * self._rate)
                if due > sent:
                    writer.append(self._make_rows(began, sent, due))
                    sent = due

    def _make_rows(self, began: float, first: int, end: int) -> pa.Table:
        ids = np.arange(first, end)
        micros = ((began + ids / self._rate) * 1e6).astype("int64")
        table = pa.table({"id": ids, "v": ids.astype(float)}, schema=SCHEMA)
        return table.append_column(EVENT, pa.array(micros).cast(_STAMP))

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()


@dataclass(frozen=True, slots=True, kw_only=True)
class Delays:
    """Seconds from when a row was due to its commit."""

    p50_s: float
    p95_s: float
    rows: int


def measure_delays(topic: Topic, start: int) -> Delays:
    """Measure the rows of a topic from an offset on."""
    end = topic.refresh()
    waits: list[np.ndarray] = []
    for commit in topic.commits(start, end):
        low = max(start, commit.first)
        for batch in topic.read(low, commit.end, [EVENT]):
            stamps = batch[EVENT].cast(pa.int64()).to_numpy(zero_copy_only=False)
            waits.append(commit.at - stamps / 1e6)
    return summarize_delays(waits)


def summarize_delays(waits: Sequence[np.ndarray]) -> Delays:
    """Summarize delays row by row."""
    every = np.concatenate(waits) if waits else np.array([np.nan])
    p50, p95 = np.percentile(every, [50, 95])
    return Delays(p50_s=float(p50), p95_s=float(p95), rows=len(every))
