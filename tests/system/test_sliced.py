"""Operators with keyed state on real Spark, while replicas change, against plain Python."""

from collections import Counter

import pyarrow as pa
import pytest
from tests.spark_engines import Started, until
from tests.system.test_operators import drained, fill, rows

from penstock.engines.port import Plan
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.keyed_counts import counts

pytestmark = pytest.mark.spark


def test_words_are_counted_while_replicas_change(started: Started, layout: RunLayout) -> None:
    pipeline = Pipeline("word-count")
    pipeline.topic("lines", "id long, line string", external=True)
    pipeline.topic("words", "word string")

    @pipeline.batches(reads="lines", writes="words", max_replicas=4)
    def split(batch: pa.RecordBatch) -> dict[str, list[str]]:
        return {"word": [word for line in batch["line"].to_pylist() for word in line.split()]}

    count = pipeline.sliced("words", "counted", slices=16, max_replicas=6, name="count")
    count(counts(by="word"))

    lines = [" ".join(f"w{(i * j) % 211}" for j in range(1, 8)) for i in range(3000)]
    fill(layout, pipeline, "lines", id=list(range(600)), line=lines[:600])
    engine = started.engine(pipeline, layout=layout)
    for part, k in enumerate((3, 6, 1, 4), start=1):
        engine.apply(Plan(replicas={"count": k, "split": min(k, 4)}))
        ids = range(600 * part, 600 * (part + 1))
        fill(layout, pipeline, "lines", id=list(ids), line=[lines[i] for i in ids])
        until(engine, drained(engine))

    truth = Counter(word for line in lines for word in line.split())
    last = dict(zip(rows(layout, "counted", "word"), rows(layout, "counted", "n"), strict=True))
    assert last == truth
    log = BatchLog(layout.batches("count"))
    seen = [record for n in range(500) if (record := log.get(n)) is not None]
    assert len({record.replicas for record in seen}) >= 3
    assert sum(record.rows_in for record in seen) == truth.total()
