"""A program with its own Spark session: two pipelines of `__main__` run on it, one in a thread.

Prints one JSON object; the test compares it with what must be there.
"""

import json
import os
import sys
import threading
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from penstock import Pipeline

HOME = Path(sys.argv[1]) if __name__ == "__main__" else Path()
ROWS = "id long, amount double"

numbers = Pipeline("numbers", objective_s=5)
numbers.topic("numbers", "id long")
numbers.topic("processes", "id long, process long")


@numbers.produces("numbers", arrivals="deterministic")
def count(first_id, due):
    return {"id": range(first_id, first_id + len(due))}


@numbers.batches(reads="numbers", writes="processes", max_replicas=2)
def note_process(batch):
    return {"id": batch["id"], "process": [os.getpid()] * batch.num_rows}


@numbers.egress(reads="processes")
def save_processes(df):
    return df.writeStream.format("parquet").option("path", str(HOME / "processes"))


orders = Pipeline("orders")
orders.topic("orders", ROWS)
orders.topic("large", ROWS)


@orders.ingest(writes="orders")
def files(spark):
    return spark.readStream.schema(ROWS).json(str(HOME / "in"))


@orders.batches(reads="orders", writes="large", max_replicas=2)
def keep_large(batch):
    return batch.filter(pc.greater_equal(batch["amount"], 50.0))


@orders.egress(reads="large")
def save_large(df):
    return df.writeStream.format("parquet").option("path", str(HOME / "large"))


def settings_of(spark):
    """Return everything that a program can set on its session, context and Hadoop."""
    hadoop = spark.sparkContext._jsc.hadoopConfiguration()
    return {
        "session": dict(spark.conf.getAll),
        "context": dict(spark.sparkContext.getConf().getAll()),
        "files": [hadoop.get("fs.file.impl"), hadoop.get("fs.file.impl.disable.cache")],
    }


def write_orders(name, first):
    (HOME / "in").mkdir(exist_ok=True)
    lines = (json.dumps({"id": i, "amount": float(i % 100)}) for i in range(first, first + 200))
    (HOME / f"{name}.tmp").write_text("\n".join(lines))
    (HOME / f"{name}.tmp").rename(HOME / "in" / name)


def drain(spark, answers):
    """Process what is there, and end."""
    run = orders.run(policy="ds2", spark=spark, available_now=True, out=HOME / "orders")
    answers.append(
        {
            "ended": run.result.spark.ended,
            "thread": threading.current_thread().name,
            "rows": pq.read_table(HOME / "large").sort_by("id")["id"].to_pylist(),
        }
    )


def main():
    from pyspark.sql import SparkSession  # noqa: PLC0415  (only when it runs)

    os.environ["PYSPARK_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local[4]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "3")
        .getOrCreate()
    )
    spark.range(3).createOrReplaceTempView("mine")
    before = settings_of(spark)
    run = numbers.run(
        "constant", "ds2", workload_params={"rate": 40}, minutes=0.1, interval_s=2,
        spark=spark, out=HOME / "numbers",
    )  # fmt: skip
    found = pq.read_table(HOME / "processes")
    answers = []
    for name, first in (("a.json", 0), ("b.json", 200)):
        write_orders(name, first)
        thread = threading.Thread(target=drain, args=(spark, answers), name="other")
        thread.start()
        thread.join()
    report = {
        "offered": run.result.scores.offered_records,
        "ids": sorted(found["id"].to_pylist()),
        "processes": sorted(set(found["process"].to_pylist())),
        "driver": os.getpid(),
        "drained": answers,
        "settings": [before, settings_of(spark)],
        "still_usable": [spark.sql("select sum(id) from mine").first()[0]],
        "is_active": SparkSession.getActiveSession()._jsparkSession.equals(spark._jsparkSession),
        "active_queries": len(spark.streams.active),
    }
    spark.stop()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
