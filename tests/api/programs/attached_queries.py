"""A program with plain queries in local mode, to which Penstock is attached.

Runs the code blocks of docs/attach.md as well. Prints one JSON object; the test compares it.
"""

import json
import sys
import time
from pathlib import Path

from tests.documents.pages import blocks_of

import penstock


def write_files(home: Path, count: int) -> None:
    """Put files of ten lines into the directory that a query reads."""
    (home / "in").mkdir(exist_ok=True)
    for number in range(count):
        (home / "next.tmp").write_text("to be or not to be\n" * 10)
        (home / "next.tmp").rename(home / "in" / f"{number}.txt")


def start_slow(spark, name, partitions):
    """Start a query with one slow task: a second of input takes it 0.75 s, more than its trigger.

    A rate source gives a partition every `partitions`th row, so one partition has all slow rows.
    """
    rate = spark.readStream.format("rate").option("rowsPerSecond", 200)
    frame = rate.option("numPartitions", partitions).load()

    def wait(batches):
        for batch in batches:
            slow = sum(value % 4 == 0 for value in batch["value"].to_pylist())
            time.sleep(0.015 * slow)
            yield batch

    slow = frame.mapInArrow(wait, frame.schema)
    stream = slow.writeStream.format("noop").queryName(name).trigger(processingTime="1 second")
    return stream.start()


def start_queries(spark, home):
    """Start a query with state, one with a read limit, one that fails, and two slow ones."""
    rate = spark.readStream.format("rate").option("rowsPerSecond", 40).option("numPartitions", 2)
    counts = rate.load().groupBy("value").count()
    files = spark.readStream.option("maxFilesPerTrigger", 1).text(str(home / "in"))

    def fail(_frame, number):
        if number == 2:
            raise ValueError("the sink is gone")

    return [
        counts.writeStream.format("noop").outputMode("update").queryName("counts").start(),
        files.writeStream.format("noop")
        .queryName("files")
        .trigger(processingTime="2 seconds")
        .start(),
        rate.load().writeStream.foreachBatch(fail).queryName("broken").start(),
        start_slow(spark, "narrow", 1),
        start_slow(spark, "hot", 4),
    ]


def wait_for(condition, patience_s=60.0):
    until = time.monotonic() + patience_s
    while time.monotonic() < until:
        if (found := condition()) is not None:
            return found
        time.sleep(0.5)
    raise SystemExit("waited in vain")


def find_verdicts(attached):
    """Return the culprits of each query once all of them are known."""
    verdicts = {}
    for tick in attached.journal.ticks:
        for event in tick.status.events:
            if getattr(event, "KIND", "") == "verdict":
                verdicts.setdefault(event.operator, []).append(event.culprit)
    is_known = {"narrow", "hot", "files"} <= set(verdicts)
    return verdicts if is_known and "source-limit" in verdicts["files"] else None


def find_snapshot(attached):
    """Return the last snapshot in which both queries have been measured."""
    for tick in reversed(attached.journal.ticks):
        shown = tick.snapshot.operators if tick.snapshot is not None else {}
        names = [name for name in ("counts", "files") if name in shown]
        if len(names) == 2 and all(shown[name].extra.get("batches", 0) >= 3 for name in names):
            return tick.snapshot
    return None


def main():
    from pyspark.sql import SparkSession  # noqa: PLC0415  (only when it runs)

    home = Path(sys.argv[1])
    spark = (
        SparkSession.builder.master("local[8]")
        .appName("plain")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    write_files(home, 40)
    queries = start_queries(spark, home)
    runs = [str(query.runId) for query in queries]
    attached = penstock.attach(
        spark, freshness="30 s", policy="ds2", interval_s=2, out=home / "run", quiet=True
    )
    snapshot = wait_for(lambda: find_snapshot(attached))
    counts, files = snapshot.operators["counts"], snapshot.operators["files"]
    verdicts = wait_for(lambda: find_verdicts(attached))
    attached.detach()
    # the code of the page, with a query of this program
    names = {"spark": spark, "query": queries[0]}
    for block in blocks_of("docs/attach.md", "py"):
        if "elastic" not in block.text:
            exec(block.text, names)
    later = penstock.attach(
        spark, queries[0], freshness=10, mode="dry-run", interval_s=1, out=home / "later"
    )
    report = {
        "mode": attached.mode,
        "verdicts": verdicts,
        "note": attached.note,
        "offered": snapshot.offered["counts"],
        "backlogs": [counts.extra["backlog"], files.extra["backlog"]],
        "waiting_files": files.queue,
        "tasks": counts.extra.get("tasks"),
        "state_rows": counts.extra["state_rows"],
        "allowed_s": files.extra["allowed_s"],
        "executors": [tick.status.executors for tick in attached.journal.ticks][-1],
        "are_active": [query.isActive for query in queries],
        "same_runs": [str(query.runId) for query in queries] == runs,
        "errors": [
            event.error
            for tick in attached.journal.ticks
            for event in tick.status.events
            if getattr(event, "KIND", "") == "query-ended"
        ],
    }
    for query in queries:
        query.stop()
    report["ends_with_its_query"] = later.wait(20.0)
    spark.stop()
    print(json.dumps(report))


if __name__ == "__main__":
    main()
