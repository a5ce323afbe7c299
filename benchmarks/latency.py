"""What a row waits: from when it was due to its commit behind one operator, or three, or a chain.

Rows of 16 bytes arrive at a steady rate. A plain query reads the very topic, with as many tasks,
Spark's default trigger and polling, and writes to a topic that is read like ours. Ours and plain
take turns, and figures are medians of rounds. The delay includes 25 ms in the mean for which
the producer gathers rows.

    python benchmarks/latency.py
    python benchmarks/latency.py --chains --rounds 1     three operators, chained and not, only
"""

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.chained_pipeline import join_chains
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from sides.batch_steps import record_steps, spark_steps
from sides.engine_batches import next_batch, read_records
from sides.paced_rows import COLUMNS, SCHEMA, Delays, PacedFeeder, measure_delays
from sides.plain_hop import start_plain_hop
from sides.timing import show_step

#: The share of the machine that batches may take beside their rows.
TIMING = BatchTiming(overhead_share=0.2)
RATES = (100.0, 5_000.0)
ROUNDS = 3
#: Seconds of a round, and those at its beginning that are not counted.
ROUND_S, WARM_S = 22.0, 12.0
REPLICAS = 2


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--chains", action="store_true", help="measure three operators only")
    args = parser.parse_args()
    print("| figure | measured | aim |\n|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
        place = Path(home)
        spark = start_session("bench", 16, place / "spark.log")
        start_workers(spark, 8, place / "warming")
        for row in (measure_chains if args.chains else measure)(spark, place, args.rounds):
            print(f"| {' | '.join(row)} |", flush=True)
        end_session(spark)
    return 0


def measure(spark: SparkSession, place: Path, rounds: int) -> Iterator[tuple[str, str, str]]:
    """Yield the rows of the table."""
    one_hop: dict[float, Delays] = {}
    for rate in RATES:
        show_step(f"one operator, {rate:g} rows/s")
        ours, plain = [], []
        for number in range(rounds):
            run = place / f"one-{rate:g}-{number}"
            ours.append(engine_delays(spark, run, rate, 1))
            plain.append(plain_delays(spark, place / f"plain-{rate:g}-{number}", rate, 1))
        one_hop[rate] = middle(ours)
        yield compare(f"one operator / plain query, {rate:g} rows/s", ours, plain, "<= 1.3")
    rate, three = RATES[-1], list[Delays]()
    yield from measure_chains(spark, place, rounds, three)
    hops = middle(three).p50_s / one_hop[rate].p50_s
    yield (
        f"three operators / one, p50, {rate:g} rows/s",
        f"**{hops:.2f}** ({middle(three).p50_s:.2f} s / {one_hop[rate].p50_s:.2f} s)",
        "<= 3.5",
    )
    yield from profile_batch(spark, place / "profile", rate)


def measure_chains(
    spark: SparkSession, place: Path, rounds: int, three: list[Delays] | None = None
) -> Iterator[tuple[str, str, str]]:
    """Yield the rows about three operators: chained, each with a query, and one plain query.

    The delays of the three without a chain are added to `three`.
    """
    rate, chained, plain = RATES[-1], list[Delays](), list[Delays]()
    three = [] if three is None else three
    show_step("three operators, chained and not")
    for number in range(rounds):
        run = place / f"three-{number}"
        chained.append(engine_delays(spark, run.with_suffix(".chain"), rate, 3, is_chained=True))
        three.append(engine_delays(spark, run, rate, 3))
        plain.append(plain_delays(spark, place / f"plain-three-{number}", rate, 3))
    yield compare(
        f"three chained operators / plain query, {rate:g} rows/s", chained, plain, "<= 1.3"
    )
    yield compare(f"three operators / plain query of the three, {rate:g} rows/s", three, plain, "")


def compare(
    figure: str, ours: Sequence[Delays], plain: Sequence[Delays], aim: str
) -> tuple[str, str, str]:
    """Return a row of the table with both ratios, and the seconds behind them."""
    a, b = middle(ours), middle(plain)
    ratios = f"p50 **{a.p50_s / b.p50_s:.2f}**, p95 **{a.p95_s / b.p95_s:.2f}**"
    seconds = f"{a.p50_s:.2f} and {a.p95_s:.2f} s / {b.p50_s:.2f} and {b.p95_s:.2f} s"
    return figure, f"{ratios} ({seconds})", aim


def middle(delays: Sequence[Delays]) -> Delays:
    """Return the medians of some rounds."""
    return Delays(
        p50_s=statistics.median(d.p50_s for d in delays),
        p95_s=statistics.median(d.p95_s for d in delays),
        rows=sum(d.rows for d in delays),
    )


# --- ours


def build(operators: int) -> Pipeline:
    """Declare operators in a row, each of which computes one column anew."""
    pipeline = Pipeline("hops")
    for number in range(operators + 1):
        is_end = number in (0, operators)
        pipeline.topic(
            f"t{number}", COLUMNS, external=number == 0, keep="1 day" if is_end else "read"
        )
    for number in range(operators):

        def step(batch: pa.RecordBatch) -> dict[str, pa.Array]:
            return {"id": batch["id"], "v": pc.add(batch["v"], 1.0)}

        step.__name__ = f"step{number}"
        pipeline.batches(f"t{number}", f"t{number + 1}", replicas=REPLICAS)(step)
    return pipeline


def engine_delays(
    spark: SparkSession, run: Path, rate: float, operators: int, *, is_chained: bool = False
) -> Delays:
    """Measure some operators in a row."""
    pipeline = join_chains(build(operators)) if is_chained else build(operators)
    engine = SparkEngine(spark, pipeline, RunLayout(run), timing=TIMING)
    engine.start()
    target = Topic.open(engine.layout.topic(f"t{operators}"))
    try:
        with PacedFeeder(engine.layout.topic("t0"), rate):
            engine.advance(WARM_S)  # after a sleep, the next call would return at once
            start = target.refresh()
            engine.advance(ROUND_S - WARM_S)
            delays = measure_delays(target, start)
            if engine.operator_errors:
                raise RuntimeError("\n".join(engine.operator_errors.values()))
    finally:
        engine.stop()
    return delays


def profile_batch(spark: SparkSession, run: Path, rate: float) -> Iterator[tuple[str, str, str]]:
    """Yield the median time of each step of a batch of one operator."""
    show_step("steps of a batch")
    engine = SparkEngine(spark, build(1), RunLayout(run), timing=TIMING)
    engine.start()
    with PacedFeeder(engine.layout.topic("t0"), rate):
        engine.advance(WARM_S)
        first = next_batch(engine, "step0")
        engine.advance(ROUND_S - WARM_S)
    (progress,) = [query.recentProgress for query in spark.streams.active]
    records = read_records(engine, "step0", first)
    engine.stop()
    for step, seconds in (*record_steps(records), *spark_steps(progress)):
        yield f"a batch: {step}", f"{seconds * 1000:.0f} ms", ""


# --- plain


def plain_delays(spark: SparkSession, home: Path, rate: float, steps: int) -> Delays:
    """Measure a plain query with the functions of some operators."""
    source, target = (Topic.create(home / name, SCHEMA) for name in ("in", "out"))

    def transform(df: DataFrame) -> DataFrame:
        return df.mapInArrow(_repeat(steps), df.schema)

    query = start_plain_hop(spark, source, target, home / "checkpoint", transform)
    try:
        with PacedFeeder(source.directory, rate):
            start = _wait(target, WARM_S)
            time.sleep(ROUND_S - WARM_S)
            return measure_delays(target, start)
    finally:
        query.stop()


def _repeat(steps: int) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def call(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            values = batch["v"]
            for _ in range(steps):
                values = pc.add(values, 1.0)
            columns = [values if name == "v" else batch[name] for name in batch.schema.names]
            yield pa.RecordBatch.from_arrays(columns, names=batch.schema.names)

    return call


def _wait(topic: Topic, seconds: float) -> int:
    time.sleep(seconds)
    return topic.refresh()


if __name__ == "__main__":
    sys.exit(main())
