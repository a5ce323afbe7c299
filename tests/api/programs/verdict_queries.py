"""A program with queries that more executors do not help, to which Penstock is attached.

`local`: a source whose listing keeps the driver busy, and a state whose commits take long.
`service`: a service that takes a fixed number of rows, however many executors call it.
Prints one JSON object with the verdicts of each query; the test compares it.
"""

import fcntl
import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

import penstock

STORE = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class SlowCatalog(DataSource):
    """A source whose driver part asks a slow catalog what there is to read."""

    @classmethod
    def name(cls):
        return "slow-catalog"

    def schema(self):
        return "value long"

    def streamReader(self, schema):  # noqa: ARG002, N802
        return SlowCatalogReader()


class SlowCatalogReader(DataSourceStreamReader):
    def __init__(self):
        self._end = 0

    def initialOffset(self):  # noqa: N802
        return {"at": 0}

    def latestOffset(self):  # noqa: N802
        time.sleep(2.5)
        self._end += 10
        return {"at": self._end}

    def partitions(self, start, end):
        return [InputPartition((start["at"], end["at"]))]

    def read(self, partition):
        yield from ((value,) for value in range(*partition.value))

    def commit(self, end):
        pass


def start(frame, name, home, mode="append"):
    stream = frame.writeStream.format("noop").queryName(name).outputMode(mode)
    return stream.option("checkpointLocation", str(home / f"checkpoint-{name}")).start()


def start_local(spark, home):
    """Start a query that the driver holds up, and one that commits of its state hold up."""
    spark.dataSource.register(SlowCatalog)
    start(spark.readStream.format("slow-catalog").load(), "catalog", home)
    start_state(spark, home)


def start_state(spark, home):
    """Start a query with little data and state in many partitions."""
    rate = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    start(rate.groupBy("value").count(), "state", home, "update")


def start_service(spark, home):
    """Start a query whose rows pass a service one after the other, from every executor."""
    (home / "in").mkdir()
    for number in range(2400):
        (home / "in" / f"{number:05}.txt").write_text("row\n" * 20)
    lock = home / "service.lock"
    lock.touch()

    def call(batches):
        for batch in batches:
            for _ in range(batch.num_rows):
                with lock.open() as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    time.sleep(0.008)
            yield batch

    rows = spark.readStream.option("maxFilesPerTrigger", 8).text(str(home / "in"))
    start(rows.mapInArrow(call, "value string"), "service", home)


def make_policy():
    """Return a policy that wants one executor, and two when that has been measured."""
    seen = {"one": 0}

    def decide(history, _applied, _params):
        now = history[-1]
        running = [op.parallelism for op in now.operators.values()]
        is_measured = all(op.busy is not None for op in now.operators.values())
        seen["one"] += running == [1] and is_measured
        wanted = 2 if seen["one"] >= 4 else 1
        target = lambda op: penstock.Target(op.parallelism, wanted, penstock.Reason.FITS)  # noqa: E731
        return penstock.each_operator("steps", now, target)

    return penstock.Policy(name="steps", summary="", paper="", decide=decide)


def find_verdicts(attached):
    """Return evidence by query and culprit."""
    events = [event for tick in attached.journal.ticks for event in tick.status.events]
    verdicts = {}
    for event in events:
        if getattr(event, "KIND", "") == "verdict":
            verdicts.setdefault(event.operator, {})[event.culprit] = event.evidence
    return verdicts


#: What each kind runs on, how it starts, and the verdicts that are expected.
KINDS = {
    "local": ("local[2]", start_local, {("catalog", "driver"), ("state", "state-commit")}),
    "service": ("local-cluster[2,1,1024]", start_service, {("service", "sink")}),
}


def main():
    kind, home = sys.argv[1], Path(sys.argv[2])
    master, start_queries, expected = KINDS[kind]
    builder = SparkSession.builder.master(master).config("spark.ui.enabled", "false")
    settings = {
        "spark.executor.memory": "1g",
        "spark.sql.shuffle.partitions": 24,
        "spark.sql.files.maxPartitionBytes": 1000,
        "spark.sql.files.openCostInBytes": 1000,
        "spark.sql.streaming.stateStore.providerClass": STORE,
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false",
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    start_queries(spark, home)
    attached = penstock.attach(
        spark,
        freshness="2 s",
        executors=(1, 2),
        policy=make_policy(),
        guards={"cooldown_s": "off", "hold_while_draining": "off"},
        interval_s=2,
        out=home / "run",
        quiet=True,
    )
    until = time.monotonic() + 240
    while time.monotonic() < until:
        verdicts = find_verdicts(attached)
        if all(culprit in verdicts.get(name, {}) for name, culprit in expected):
            break
        time.sleep(1)
    attached.detach()
    explained = attached.explain()
    for query in spark.streams.active:
        query.stop()
    spark.stop()
    print()
    print(json.dumps({"verdicts": verdicts, "explained": explained}))


if __name__ == "__main__":
    main()
