"""A program with queries that Penstock starts again with other numbers of partitions.

One has state, one has none, one fails with the new number. Runs the code of docs/attach.md as well.
Prints one JSON object; the test compares it.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from tests.documents.pages import blocks_of

import penstock

WANTED = 3
STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def want_three(history, _applied, _params):
    """Return a decision for three partitions, whatever is measured."""
    return penstock.each_operator(
        "three",
        history[-1],
        lambda op: penstock.Target(op.parallelism, WANTED, penstock.Reason.FITS),
    )


def declare(home):
    """Return the three queries, and what their sinks have got."""
    rows_by_batch, counts, sums = {}, {}, {}

    def read(spark, name, k):
        source = spark.readStream.format("rate").option("rowsPerSecond", 50)
        return source.option("numPartitions", k).load(), str(home / name)

    def start(frame, name, place, keep, mode="append"):
        stream = frame.writeStream.foreachBatch(keep).queryName(name).outputMode(mode)
        return stream.option("checkpointLocation", place).start()

    def copy(spark, k):
        def keep(frame, batch):
            rows_by_batch[batch] = [row.value for row in frame.collect()]

        rows, place = read(spark, "copies", k)
        return start(rows, "copies", place, keep)

    def count(spark, k):
        def keep(frame, _batch):
            counts.update({row.key: row["count"] for row in frame.collect()})

        rows, place = read(spark, "counts", 2)
        grouped = rows.selectExpr("value % 20 key").groupBy("key").count()
        return start(grouped, "counts", place, keep, "update")

    def add(spark, k):
        def keep(frame, _batch):
            if k == WANTED:
                raise ValueError("no connection for the third partition")
            sums.update({row.key: row["count"] for row in frame.collect()})

        rows, place = read(spark, "fragile", 2)
        grouped = rows.selectExpr("value % 20 key").groupBy("key").count()
        return start(grouped, "fragile", place, keep, "update")

    queries = [penstock.elastic(each, partitions=(2, 3)) for each in (copy, count, add)]
    return queries, rows_by_batch, counts, sums


def find_events(attached):
    """Return the events about partitions: kind, query, and the number that runs then."""
    events = [event for tick in attached.journal.ticks for event in tick.status.events]
    return [
        (event.KIND, event.operator, event.partitions)
        for event in events
        if getattr(event, "KIND", "").startswith("partitions-")
    ]


def run_page(spark):
    """Run the code of the page; return the partitions of its query."""
    names = {"spark": spark, "penstock": penstock}
    (block,) = [b for b in blocks_of("docs/attach.md", "py") if "elastic" in b.text]
    exec(block.text, names)
    names["by_key"].stop()
    names["attached"].detach()
    return names["by_key"].partitions


def main():
    home = Path(sys.argv[1])
    spark = (
        SparkSession.builder.master("local[4]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.streaming.stateStore.providerClass", STORE)
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    queries, rows_by_batch, counts, sums = declare(home)
    copies, counting, fragile = queries
    attached = penstock.attach(
        spark,
        queries,
        freshness="20 s",
        mode="restart",
        policy=penstock.Policy(name="three", summary="", paper="", decide=want_three),
        guards={"cooldown_s": "off"},
        interval_s=1.0,
        out=home / "run",
    )
    until = time.monotonic() + 150
    ends = {"partitions-changed", "partitions-restored"}
    while time.monotonic() < until:
        if len([kind for kind, _, _ in find_events(attached) if kind in ends]) >= 3:
            break
        time.sleep(0.5)
    shuffle = spark.conf.get("spark.sql.shuffle.partitions")
    progress = counting.query.lastProgress
    report = {
        "mode": attached.mode,
        "events": find_events(attached),
        "partitions": [query.partitions for query in queries],
        "state_partitions": progress["stateOperators"][0]["numShufflePartitions"],
        "shuffle_of_the_session": shuffle,
        "are_active": [query.is_active for query in queries],
    }
    report["explained"] = attached.explain()
    attached.detach()
    report["active_after_detach"] = [query.is_active for query in queries]
    read = []
    for query in (counting, fragile):
        query.query.processAllAvailable()
        query.stop()
        read.append(int(query.query.lastProgress["sources"][0]["endOffset"]) * 50)
    copies.stop()
    values = [value for batch in rows_by_batch.values() for value in batch]
    report["copied_once"] = sorted(values) == list(range(len(values)))
    report["counted"] = [sum(counts.values()), sum(sums.values())]
    report["read"] = read
    report["page"] = run_page(spark)
    spark.stop()
    print()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
