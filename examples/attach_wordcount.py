"""Two plain streaming queries that know nothing of Penstock, and one line that scales them.

    python examples/attach_wordcount.py

The word count is small, so one of two executors is sent home. Then a second query starts, in
which every row waits for a service, and the executor comes back. Takes about a minute.
"""

import os
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, explode, split, when

import penstock

#: Two workers with one core and 1 GB each, as processes of this machine.
MASTER = "local-cluster[2,1,1024]"


def count_words(spark: SparkSession) -> DataFrame:
    """Ten lines a second; count their words."""
    lines = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    text = when(col("value") % 2 == 0, "to be or not to be").otherwise("that is the question")
    words = lines.select(explode(split(text, " ")).alias("word"))
    return words.groupBy("word").count()


def call_service(spark: SparkSession) -> DataFrame:
    """A hundred and fifty rows a second; each one waits 10 ms for a service."""

    def wait(batches):
        for batch in batches:
            time.sleep(0.010 * batch.num_rows)
            yield batch

    rows = spark.readStream.format("rate").option("rowsPerSecond", 150).option("numPartitions", 6)
    return rows.load().mapInArrow(wait, "timestamp timestamp, value long")


def start(frame: DataFrame, name: str, mode: str):
    stream = frame.writeStream.format("noop").queryName(name).outputMode(mode)
    return stream.trigger(processingTime="1 second").start()


def wait_for(executors: int, attached: penstock.Attachment, patience_s: float) -> bool:
    """Wait until as many executors run; show what runs meanwhile."""
    until, shown = time.monotonic() + patience_s, None
    while time.monotonic() < until and attached.is_running:
        ticks = attached.journal.ticks
        running = ticks[-1].status.executors if ticks else None
        if running != shown:
            print(f"executors: {running}", flush=True)
            shown = running
        if running == executors:
            return True
        time.sleep(1)
    return False


def main(out: Path | None = None) -> bool:
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # workers use this Python, too
    spark = (
        SparkSession.builder.master(MASTER)
        .appName("wordcount")
        .config("spark.executor.memory", "1g")
        .config("spark.sql.shuffle.partitions", 2)
        .config("spark.ui.enabled", "false")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    queries = [start(count_words(spark), "words", "complete")]
    attached = penstock.attach(
        spark,
        freshness="10 s",
        executors=(1, 2),
        policy="ds2",
        guards={"cooldown_s": "off"},
        interval_s=3,
        out=out,
    )
    has_shrunk = wait_for(1, attached, patience_s=90)
    queries.append(start(call_service(spark), "service", "append"))
    has_grown = wait_for(2, attached, patience_s=90)
    attached.detach()
    print(attached.explain())
    for query in queries:
        query.stop()
    spark.stop()
    print(f"penstock explain {attached.directory}")
    return has_shrunk and has_grown


if __name__ == "__main__":
    sys.exit(0 if main(Path(sys.argv[1]) / "run" if len(sys.argv) > 1 else None) else 1)
