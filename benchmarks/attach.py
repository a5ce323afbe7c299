"""What an attached application pays: processor time and memory, with and without Penstock.

A plain query on two local cores: 2,000 rows/s with a Python function and a keyed count, a batch
a second. Periods with and without an attachment, which has its defaults, alternate in one run.
The Python part of the driver does little else, so its difference is exact; that of the JVM, which
answers the calls, is lost in the noise of a shared machine if it is small.

    python benchmarks/attach.py
"""

import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

import penstock

#: Pairs of periods, and the length of each.
PAIRS, PERIOD_S = 4, 30.0
#: The aims: a share of the application's processor time, and megabytes.
MAX_SHARE, MAX_MB = 0.01, 50.0
_TICK_S = 1 / os.sysconf("SC_CLK_TCK")


def start_query(spark: SparkSession, home: Path) -> None:
    """Start the query that is followed."""

    def square(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = [value * value for value in batch["value"].to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(values, pa.int64())], ["value"])

    rows = spark.readStream.format("rate").option("rowsPerSecond", 2000).load()
    counts: DataFrame = rows.mapInArrow(square, "value long").selectExpr("value % 100 k")
    stream = counts.groupBy("k").count().writeStream.format("noop").outputMode("update")
    place = stream.option("checkpointLocation", str(home / "checkpoint"))
    place.trigger(processingTime="1 second").start()


def read_tree_s(root: int) -> float:
    """Return the processor seconds of a process and of all its descendants."""
    stats = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(") ")[2].split()
        except OSError:  # it ended meanwhile
            continue
        stats[int(path.parent.name)] = (int(fields[1]), int(fields[11]) + int(fields[12]))
    inside, before = {root}, 0
    while len(inside) > before:
        before = len(inside)
        inside |= {pid for pid, (parent, _) in stats.items() if parent in inside}
    return sum(stats[pid][1] for pid in inside if pid in stats) * _TICK_S


def read_own_s() -> float:
    """Return the processor seconds of this process, which is the driver's Python."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def read_resident_mb() -> float:
    """Return the resident memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1e6


def measure(jvm: int) -> tuple[float, float]:
    """Return processor seconds of the driver's Python and of Spark in one period."""
    own_s, spark_s = read_own_s(), read_tree_s(jvm)
    time.sleep(PERIOD_S)
    return read_own_s() - own_s, read_tree_s(jvm) - spark_s


def main() -> int:
    """Print a table; the exit code says whether the aims are met."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    spark = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.shuffle.partitions", "2")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        start_query(spark, home)
        time.sleep(PERIOD_S)  # until it runs evenly
        assert spark.streams.active, "the query has failed"
        before_mb = read_resident_mb()
        without, beside = [], []
        for number in range(PAIRS):
            without.append(measure(gateway.proc.pid))
            out = home / f"run{number}"
            attached = penstock.attach(spark, freshness="10 s", out=out, quiet=True)
            beside.append(measure(gateway.proc.pid))
            attached.detach()
        grown_mb = read_resident_mb() - before_mb
        for query in spark.streams.active:
            query.stop()
        spark.stop()
    return report(without, beside, grown_mb)


def report(
    without: list[tuple[float, float]], beside: list[tuple[float, float]], grown_mb: float
) -> int:
    """Print medians over the periods."""
    own_s = statistics.median(on[0] - off[0] for on, off in zip(beside, without, strict=True))
    jvm_s = statistics.median(on[1] - off[1] for on, off in zip(beside, without, strict=True))
    whole_s = statistics.median(own + spark for own, spark in without)
    share = own_s / whole_s
    print(f"{'application, without':<34}{whole_s / PERIOD_S:>8.3f} cores")
    print(f"{'driver, more with an attachment':<34}{share:>8.2%} of that (aim: {MAX_SHARE:.0%})")
    print(
        f"{'Spark, more with an attachment':<34}{jvm_s / whole_s:>+8.1%} of that (noise included)"
    )
    print(f"{'memory of the driver, more':<34}{grown_mb:>8.1f} MB (aim: {MAX_MB:.0f})")
    return 0 if share <= MAX_SHARE and grown_mb <= MAX_MB else 1


if __name__ == "__main__":
    sys.exit(main())
