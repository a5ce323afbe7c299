"""Files in, three operators, one of them with state; retention everywhere: nothing may grow."""

import time
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from penstock import Pipeline
from penstock.pipelines.stateful.time_windows import windows

MAX_REPLICAS = 6
#: What a row takes: two replicas carry the mean load, four its peaks.
ROW_S = 0.005


def build(source: str = "in") -> Pipeline:
    """Declare it over a directory of JSON files, which are removed once they were read."""
    pipeline = Pipeline("soak", objective_s=10)
    pipeline.topic("raw", "id long, text string")
    pipeline.topic("clean", "id long, text string")
    pipeline.topic("sized", "id long, text string, size int")
    pipeline.topic("done", "id long, text string, size int", keep="20 seconds")

    @pipeline.ingest(writes="raw")
    def files(spark: SparkSession) -> DataFrame:
        reader = spark.readStream.schema("id long, text string").option("cleanSource", "delete")
        return reader.json(str(Path(source).resolve()))

    @pipeline.batches("raw", "clean", max_replicas=MAX_REPLICAS)
    def strip(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        time.sleep(batch.num_rows * ROW_S)
        return {"id": batch["id"], "text": pc.utf8_trim_whitespace(batch["text"])}

    @pipeline.batches("clean", "sized", max_replicas=MAX_REPLICAS)
    def measure(batch: pa.RecordBatch) -> dict[str, pa.Array]:
        time.sleep(batch.num_rows * ROW_S)
        return {**{n: batch[n] for n in ("id", "text")}, "size": pc.utf8_length(batch["text"])}

    @pipeline.batches("sized", "done", max_replicas=MAX_REPLICAS)
    def keep(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    pipeline.topic(
        "minutes", "text string, start timestamp, end timestamp, n long", keep="1 minute"
    )
    count = pipeline.sliced("sized", "minutes", name="count", slices=16, max_replicas=4)
    count(windows(by="text", size_s=10))
    return pipeline


PIPELINE = build()
