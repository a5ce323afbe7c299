"""A pipeline over files of four formats, with three ways out; its database is killed once.

The data are in the directory `DATA`; what comes out is put beside them. `penstock run` loads it.
"""

import os
import signal
import sqlite3
import time
from pathlib import Path

from pyspark.sql import functions as F  # noqa: N812

from penstock import Pipeline

HOME = Path(os.environ.get("OPEN_PIPELINE_HOME", "."))
ROWS = "id long, ts timestamp, customer string, amount double"
FORMATS = ("json", "csv", "parquet", "text")

pipeline = Pipeline("open", objective_s=5)
for name in FORMATS:
    pipeline.topic(f"from_{name}", ROWS)
pipeline.topic("orders", "id long, ts timestamp, customer string, cents long", keep="1 day")


def read(spark, kind):
    reader = spark.readStream.option("maxFilesPerTrigger", 2)
    return reader.schema(ROWS).format(kind).load(str(HOME / kind))


@pipeline.ingest(writes="from_json", time="ts")
def json_files(spark):
    return read(spark, "json")


@pipeline.ingest(writes="from_csv", time="ts")
def csv_files(spark):
    return read(spark, "csv")


@pipeline.ingest(writes="from_parquet", time="ts")
def parquet_files(spark):
    return read(spark, "parquet")


@pipeline.ingest(writes="from_text", time="ts")
def text_files(spark):
    parts = F.split("value", "[|]")
    return (
        spark.readStream.option("maxFilesPerTrigger", 2)
        .text(str(HOME / "text"))
        .select(
            parts[0].cast("long").alias("id"),
            F.try_to_timestamp(parts[1]).alias("ts"),
            parts[2].alias("customer"),
            parts[3].cast("double").alias("amount"),
        )
    )


@pipeline.batches(reads=[f"from_{name}" for name in FORMATS], writes="orders", max_replicas=3)
def price(batch):
    time.sleep(0.005 * batch.num_rows)
    cents = [round(100 * amount) for amount in batch["amount"].to_pylist()]
    return {"id": batch["id"], "ts": batch["ts"], "customer": batch["customer"], "cents": cents}


@pipeline.egress(reads="orders")
def to_parquet(df):
    return df.writeStream.format("parquet").option("path", str(HOME / "out-parquet"))


@pipeline.egress(reads="orders")
def to_json(df):
    return df.writeStream.format("json").option("path", str(HOME / "out-json"))


def store(df, batch_id):
    """Replace the rows of a batch: written again, it is the same."""
    rows = [(batch_id, row.id, row.customer, row.cents) for row in df.collect()]
    with sqlite3.connect(HOME / "orders.db") as database:
        database.execute("delete from orders where batch = ?", (batch_id,))
        database.executemany("insert into orders values (?, ?, ?, ?)", rows)
        ids = " ".join(str(number) for number in sorted(row[1] for row in rows))
        database.execute("insert into attempts values (?, ?)", (batch_id, ids))
    database.close()
    if rows and not (HOME / "killed").exists():
        # the worst moment: the database has the rows, and Spark does not know
        (HOME / "killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)


@pipeline.egress(reads="orders")
def to_database(df):
    return df.writeStream.foreachBatch(store)
