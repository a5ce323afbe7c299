"""A backlog of unsorted files on real Spark: windows equal DuckDB over the same files."""

import json
import os
import random
from pathlib import Path

import duckdb
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window
from tests.spark_engines import Started, until
from tests.system.test_operators import drained

from penstock.engines.port import Plan
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.pipelines.stateful.time_windows import windows
from penstock.topics.embedded.topic import Topic

pytestmark = pytest.mark.spark

FILES, ROWS, DELAY_S, SIZE_S = 40, 150, 5, 60
PATIENCE_S = 300.0


def write_files(directory: Path) -> None:
    """Each file holds some seconds of orders, mixed up; each source batch has several files."""
    rng = random.Random(7)
    directory.mkdir()
    for number in range(FILES):
        rows = []
        for _ in range(ROWS):
            second = number * 12 + rng.uniform(0, 12)
            minute, rest = divmod(second, 60)
            ts = f"2026-01-05T19:{int(minute):02d}:{rest:06.3f}Z"
            rows.append({"customer": rng.randrange(20), "amount": rng.randrange(100), "ts": ts})
        rng.shuffle(rows)
        path = directory / f"orders-{number:03d}.json"
        path.write_text("\n".join(map(json.dumps, rows)))
        os.utime(path, (1e9 + number, 1e9 + number))  # Spark reads the oldest files first


def pipeline_over(directory: Path) -> Pipeline:
    pipeline = Pipeline("revenue")
    pipeline.topic("raw", "customer long, amount long, ts timestamp")
    pipeline.topic("orders", "customer long, amount long, ts timestamp")

    @pipeline.ingest(writes="raw")
    def files(spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema("customer long, amount long, ts timestamp")
        return reader.option("maxFilesPerTrigger", 12).json(str(directory))

    @pipeline.batches(reads="raw", writes="orders", max_replicas=3, chunk_rows=50)
    def clean(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    count = pipeline.sliced(
        "orders", "minutes", name="count", delay_s=DELAY_S, slices=8, max_replicas=3, late_to="late"
    )
    count(windows(by="customer", size_s=SIZE_S, sums="amount", time="ts"))

    @pipeline.native(reads="orders", writes="native-minutes", max_replicas=2)
    def spark_count(df: DataFrame) -> DataFrame:
        marked = df.withWatermark("ts", f"{DELAY_S} seconds")
        return (
            marked.groupBy(window("ts", f"{SIZE_S} seconds"), "customer")
            .sum("amount")
            .selectExpr("customer", "window.start as start", "`sum(amount)` as total")
        )

    return pipeline


def found(layout: RunLayout, topic: str, total: str) -> set[tuple[object, ...]]:
    log = Topic.open(layout.topic(topic))
    names = ["customer", "start", total]
    rows = [row for batch in log.read(0, log.end, names) for row in batch.to_pylist()]
    assert len({(row["customer"], row["start"]) for row in rows}) == len(rows)
    return {tuple(row[name] for name in names) for row in rows}


def truth(directory: Path, before: str) -> set[tuple[object, ...]]:
    """Windows that are closed when this is the watermark."""
    schema = "{customer: 'BIGINT', amount: 'BIGINT', ts: 'TIMESTAMPTZ'}"
    query = f"""
        select customer, time_bucket(interval {SIZE_S} seconds, ts) as start, sum(amount)::bigint
        from read_json('{directory}/*.json', columns = {schema}) group by 1, 2"""
    closed = f"where start + interval {SIZE_S} seconds <= '{before}'::timestamptz"
    with duckdb.connect() as database:
        database.execute("set timezone = 'UTC'")
        return set(database.execute(f"from ({query}) {closed}").fetchall())


def test_a_backlog_of_unsorted_files_loses_no_row_of_a_window(
    started: Started, layout: RunLayout, tmp_path: Path
) -> None:
    directory = tmp_path / "orders"
    write_files(directory)
    engine = started.engine(pipeline_over(directory), layout=layout)
    engine.apply(Plan(replicas={"clean": 2, "count": 3}))
    raw = engine.trackers["clean"].topics["raw"]
    until(engine, lambda: raw.refresh() == FILES * ROWS, PATIENCE_S)
    engine.apply(Plan(replicas={"count": 1, "spark_count": 2}))
    until(engine, drained(engine), PATIENCE_S)
    # the last file begins at 19:07:48 and ends before 19:08:00
    closed = truth(directory, "2026-01-05 19:07:00+00")
    until(engine, lambda: found(layout, "minutes", "sum_amount") >= closed, PATIENCE_S)
    assert found(layout, "minutes", "sum_amount") == closed
    assert Topic.open(layout.topic("late")).end == 0
    # Spark tells its windows one batch later, so one more file lets it
    rows = [{"customer": 1, "amount": 1, "ts": "2026-01-05T19:07:59Z"}] * 2
    (directory / "orders-999.json").write_text("\n".join(map(json.dumps, rows)))
    until(engine, lambda: found(layout, "native-minutes", "total") >= closed, PATIENCE_S)
    assert found(layout, "native-minutes", "total") == closed
