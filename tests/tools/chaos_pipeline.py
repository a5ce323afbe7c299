"""A pipeline with everything that a kill could break: a chain, a split, a union, a side output.

files -> numbers                 an ingest
numbers -> scale -> scaled -> odd     -> odds --------------------+
             |             -> burst   -> parts -> label -> labelled -> gather -> everything
             |             -> running -> sums       state in slices: sums so far, row by row
             +-> scale-errors
        -> fifties -> windows    state of Spark's own: sums of fifty seconds
"""

import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812  (as everybody writes it)

from penstock.pipelines.pipeline import Pipeline
from penstock.state.handle import State
from penstock.topics.schema import EVENT

MOST = 6
BUCKETS = 37
#: Seconds that a row takes: long enough for kills to come in the middle of a batch.
ROW_S = 0.002
ROWS = "id long, part int, value long, label string"


def chaos_pipeline(source: Path, *, has_chains: bool = False) -> Pipeline:
    """Declare it over files that arrive in a directory; topics let go what was read.

    With chains, `running` and `gather` have parts of their work done by operators behind them:
    running -> counted -> total -> sums, and gather -> gathered -> negate -> checked -> seal.
    """
    pipeline = Pipeline("chaos")
    pipeline.topic("numbers", "id long, text string")
    pipeline.topic("scaled", "id long, value long, bucket long")
    pipeline.topic("odds", ROWS)
    pipeline.topic("parts", "id long, part int, value long")
    pipeline.topic("labelled", ROWS)
    pipeline.topic("everything", ROWS)

    @pipeline.ingest(writes="numbers")
    def files(spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema("id long, text string")
        return reader.option("maxFilesPerTrigger", 8).json(str(source))

    @pipeline.batches("numbers", "scaled", max_replicas=MOST, on_error="dead-letter", chunk_rows=20)
    def scale(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        for number in batch["id"].to_pylist():
            if number % 97 == 96:
                raise ValueError(f"cannot scale {number}")
        time.sleep(batch.num_rows * ROW_S)
        ids = batch["id"]
        return {
            "id": ids,
            "value": pc.add(pc.multiply(ids, 7), 3),
            "bucket": pa.array([number % BUCKETS for number in ids.to_pylist()]),
        }

    @pipeline.batches("scaled", "odds", max_replicas=MOST, grouping="key:id")
    def odd(batch: pa.RecordBatch) -> dict[str, list[object]]:
        time.sleep(batch.num_rows * ROW_S)
        rows = [row for row in batch.to_pylist() if row["value"] % 2]
        return {
            "id": [row["id"] for row in rows],
            "part": [-1] * len(rows),
            "value": [row["value"] for row in rows],
            "label": ["odd"] * len(rows),
        }

    @pipeline.batches("scaled", "parts", max_replicas=MOST, grouping="load")
    def burst(batch: pa.RecordBatch) -> dict[str, list[int]]:
        time.sleep(batch.num_rows * ROW_S)
        rows = [(row, part) for row in batch.to_pylist() for part in range(row["id"] % 4)]
        return {
            "id": [row["id"] for row, _ in rows],
            "part": [part for _, part in rows],
            "value": [10 * row["value"] + part for row, part in rows],
        }

    sums_columns = "id long, bucket long, n long, total long"
    pipeline.topic("sums", sums_columns)
    if has_chains:
        pipeline.topic("counted", sums_columns)
    state = {"key": "bucket", "state": "n long, total long", "slices": 16}

    @pipeline.sliced("scaled", "counted" if has_chains else "sums", max_replicas=MOST, **state)
    def running(batch: pa.RecordBatch, state: State) -> dict[str, Any]:
        time.sleep(batch.num_rows * ROW_S)
        rows = batch.select(["id", "value", "bucket"]).to_pylist()
        before = state.get(batch.select(["bucket"])).to_pylist()
        known = {
            row["bucket"]: (one["n"] or 0, one["total"] or 0)
            for row, one in zip(rows, before, strict=True)
        }
        sums = {"id": [], "bucket": [], "n": [], "total": []}
        for row in rows:
            n, total = known[row["bucket"]]
            known[row["bucket"]] = now = (n + 1, total + row["value"])
            for name, value in zip(sums, (row["id"], row["bucket"], *now), strict=True):
                sums[name].append(value)
        last = [(bucket, n, total) for bucket, (n, total) in known.items()]
        columns = [pa.array(column) for column in zip(*last, strict=True)]
        state.put(pa.RecordBatch.from_arrays(columns, names=["bucket", "n", "total"]))
        return {**sums, EVENT: batch[EVENT]}

    pipeline.topic("windows", "start timestamp, bucket long, n long, total long")

    @pipeline.native("numbers", "windows", max_replicas=3)
    def fifties(df: DataFrame) -> DataFrame:
        timed = df.withColumn("at", F.timestamp_seconds("id")).withWatermark("at", "0 seconds")
        bucket = (F.col("id") % BUCKETS).alias("bucket")
        each = timed.groupBy(F.window("at", "50 seconds"), bucket)
        sums = each.agg(F.count("*").alias("n"), F.sum("id").alias("total"))
        return sums.select(F.col("window.start").alias("start"), "bucket", "n", "total")

    @pipeline.operator("parts", "labelled", max_replicas=MOST)
    def label(df: DataFrame) -> DataFrame:
        text = F.concat(F.lit("part "), "part", F.lit(" of "), (F.col("id") % 4).cast("string"))
        return df.withColumn("value", F.col("value") - 1).withColumn("label", text)

    def negate(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        time.sleep(batch.num_rows * ROW_S / 4)
        return {
            **{name: batch[name] for name in batch.schema.names},
            "value": pc.negate(batch["value"]),
        }

    if not has_chains:
        negate.__name__ = "gather"
        pipeline.batches(["odds", "labelled"], "everything", max_replicas=MOST)(negate)
        return pipeline

    def gather(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(batch.num_rows * ROW_S / 4)
        return batch

    def seal(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    def total(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(batch.num_rows * ROW_S / 4)
        return batch

    pipeline.topic("gathered", ROWS)
    pipeline.topic("checked", ROWS)
    pipeline.batches(["odds", "labelled"], "gathered", max_replicas=MOST)(gather)
    pipeline.batches("gathered", "checked", max_replicas=MOST)(negate)
    pipeline.batches("checked", "everything", max_replicas=MOST)(seal)
    pipeline.batches("counted", "sums", max_replicas=MOST)(total)
    return pipeline
