"""Nexmark queries beside plain Structured Streaming, in one run, in the thesis' variant.

A plain query reads the topics that the query's main operator reads: ready Arrow files, only the
columns that it needs, two tasks, about a second a batch, as ours. Stateful plain queries keep their
state in RocksDB with two partitions and changelog checkpoints. A plain query writes to the noop
sink; ours writes to a durable topic. The whole pipeline starts with complete events and has three
hops (four in query 3); it is compared with the same plain query. The upper limit of a plain query
is measured, too: rows that go from the files, or from the generator, to the noop sink. A whole
pipeline is measured while its batches still grow, which is most of the time for persons and
auctions, because there are few of them. Ratios of queries 1, 2 and 11 are medians of three rounds
in which both sides take turns; the others have one round.

    python benchmarks/nexmark.py [QUERY ...]
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from penstock.engines.port import Plan
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.native_state.repartition import native_settings, settings
from penstock.engines.spark.run_layout import RunLayout
from penstock.nexmark.event_order import BIDS
from penstock.nexmark.events import BID_FIELDS
from penstock.nexmark.queries import QUERIES
from penstock.nexmark.spark_source import NexmarkSource
from sides.engine_batches import (
    BatchTime,
    drain,
    link_topics,
    next_batch,
    read_records,
    rows_per_s,
    select_full,
    time_batches,
)
from sides.event_topics import SETTING, TopicFeeder, fill, make_topics, ready_rows, whole_events
from sides.nexmark_cases import CASES, NO_AIM, Case
from sides.plain_sources import BATCH_S, TASKS, TopicRows
from sides.timing import commit_gaps, show_step

#: A full topic is read for this many full batches, for this many seconds, or until it is empty.
MIN_FULL, MAX_S = 4, 30.0
#: Batches below this share of the largest still grow, or are the rest at the end.
FULL_SHARE = 0.6
#: Smaller batches are still growing: fixed costs dominate their time.
MIN_ROWS = 20_000
#: Rows/s while k changes, the values of k, and the events that are fed meanwhile.
STEADY, CHANGES, FED_EVENTS = 50_000, (5, 2, 4), 1_500_000
#: Events that the whole pipeline reads; of persons and auctions, of which there are few.
WHOLE_BIDS, WHOLE_OTHERS = 4_000_000, 12_000_000


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("queries", nargs="*", help="only these, such as q11 (all six)")
    wanted = parser.parse_args().queries or [case.query for case in CASES]
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as home:
        place = Path(home)
        spark = start_session("bench", 12, place / "spark.log")
        spark.dataSource.register(TopicRows)
        spark.dataSource.register(NexmarkSource)
        start_workers(spark, 6, place / "warming")
        print("| query | figure | measured | aim |\n|---|---|---|---|", flush=True)
        cases = [case for case in CASES if case.query in wanted]
        for query, figure, measured, aim in measure_queries(spark, place, cases):
            print(f"| {query} | {figure} | {measured} | {aim} |", flush=True)
        end_session(spark)
    return 0


# --- rows per second


def measure_queries(
    spark: SparkSession, place: Path, cases: Sequence[Case]
) -> Iterator[tuple[str, str, str, str]]:
    """Measure each query: its main operator, the whole pipeline, and changes of k."""
    shared = fill_whole_topics(place / "whole")
    for case in cases:
        show_step(f"{case.query}: filling topics")
        operator = case.build().operators[case.operator]
        filled = RunLayout(place / case.query)
        topics = make_topics(case.build(), filled, operator.reads)
        for topic in topics:
            fill(topic, ready_rows(case.build(), topic.name, case.events), case.again)
        paths = [topic.directory for topic in topics]
        ours, plain = [], []
        for number in range(case.rounds):
            ours.append(operator_rate(spark, place / f"{case.query}-own-{number}", case, paths))
            plain.append(plain_rate(spark, place / f"{case.query}-plain-{number}", case, paths))
        ratio = statistics.median(a / b for a, b in zip(ours, plain, strict=True))
        usual = statistics.median(plain)
        yield (
            case.query,
            f"main operator (`{case.operator}`) / plain query",
            f"**{ratio:.2f}** ({_millions(statistics.median(ours))} / {_millions(usual)})",
            case.aim,
        )
        if len(paths) == 1:
            same = replace(case, plain=_identity)
            source = plain_rate(spark, place / f"{case.query}-source", same, paths)
            yield case.query, "plain source alone, from files", _millions(source), NO_AIM
        if case.query == "q1":
            generated = generated_rate(spark, place / "generated", source)
            yield case.query, "plain source alone, from the generator", _millions(generated), NO_AIM
        shutil.rmtree(filled.run)
        for path in place.glob(f"{case.query}-*"):
            shutil.rmtree(path)
        whole = whole_rate(spark, place / f"whole-{case.query}", case, shared)
        yield (
            case.query,
            "whole pipeline / plain query",
            f"{whole / usual:.2f} ({_millions(whole)} / {_millions(usual)})",
            NO_AIM,
        )
        around, between = change_gaps(spark, place / f"changes-{case.query}", case)
        yield (
            case.query,
            f"longest gap between commits around a change of k of `{case.operator}` / usual gap",
            f"**{max(around) / between:.2f}** ({max(around):.2f} / {between:.2f} s)",
            "<= 1.5",
        )


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.2f} M rows/s"


def operator_rate(spark: SparkSession, run: Path, case: Case, topics: list[Path]) -> float:
    """Return the rows per second of a query's main operator on full topics."""
    show_step(f"{case.query}: main operator")
    engine = SparkEngine(spark, case.build_alone(), link_topics(run, topics))
    engine.start()
    while True:
        batches = time_batches(read_records(engine, case.operator))
        if has_settled(full := select_full(batches, FULL_SHARE)):
            break
        if engine.is_drained or engine.at > MAX_S:
            break
        engine.advance(0.25)
        assert not engine.operator_errors, engine.operator_errors
    engine.stop()
    return rows_per_s(full)


def has_settled(full: Sequence[BatchTime]) -> bool:
    """Return whether batches have stopped growing: several are of similar size, and large."""
    return len(full) >= MIN_FULL and min(rows for rows, _ in full) >= MIN_ROWS


def plain_rate(spark: SparkSession, place: Path, case: Case, topics: list[Path]) -> float:
    """Return the rows per second of a plain query over the same topics."""
    show_step(f"{case.query}: {case.plain.__name__}")
    reader = spark.readStream.format(TopicRows.name())
    frames = [reader.option("topic", str(topic)).load() for topic in topics]
    return _measure_query(spark, place, case.plain(*frames))


def generated_rate(spark: SparkSession, place: Path, max_rate: float) -> float:
    """Return the rows per second of the generator as a source: numeric fields of bids."""
    show_step("the generator as a source")
    options = {"kind": "bids", "hot": "off", "columns": ", ".join(BID_FIELDS), "partitions": TASKS}
    reader = spark.readStream.format(NexmarkSource.name()).options(**options)
    return _measure_query(
        spark, place, reader.option("rowsPerBatch", int(max_rate * BATCH_S)).load()
    )


def _identity(frame: DataFrame) -> DataFrame:
    return frame


def _measure_query(spark: SparkSession, place: Path, frame: DataFrame) -> float:
    writer = frame.writeStream.format("noop").outputMode("append")
    with settings(spark, native_settings(TASKS)):
        query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    seen: dict[int, BatchTime] = {}
    full: list[BatchTime] = []
    deadline = time.monotonic() + MAX_S
    while time.monotonic() < deadline and not has_settled(full):
        time.sleep(0.1)
        for progress in query.recentProgress:
            if progress["numInputRows"] and progress["batchId"] > 1:
                took_s = progress["durationMs"]["triggerExecution"] / 1000
                seen[progress["batchId"]] = (progress["numInputRows"], took_s)
        full = select_full(seen.values(), FULL_SHARE)
        if query.exception():
            raise RuntimeError(query.exception())
        if seen and not (query.status["isDataAvailable"] or query.status["isTriggerActive"]):
            break
    query.stop()
    shutil.rmtree(place)
    return rows_per_s(full)


# --- whole pipelines


def fill_whole_topics(run: Path) -> dict[str, Path]:
    """Fill the topics of complete events that all pipelines read."""
    show_step("filling topics with whole events")
    layout, paths = RunLayout(run), {}
    pipelines = [QUERIES[query].build("thesis", SETTING) for query in ("q1", "q3")]
    for pipeline in pipelines:
        for topic in make_topics(pipeline, layout, list(pipeline.feeds)):
            count = WHOLE_BIDS if topic.name == BIDS.name else WHOLE_OTHERS
            fill(topic, whole_events(topic.name, count))
            paths[topic.name] = topic.directory
    return paths


def whole_rate(spark: SparkSession, run: Path, case: Case, topics: dict[str, Path]) -> float:
    """Return the rows per second from the first topic to the last operator's last commit."""
    show_step(f"{case.query}: whole pipeline")
    pipeline = case.build()
    layout = link_topics(run, [topics[name] for name in pipeline.feeds])
    engine = SparkEngine(spark, pipeline, layout)
    engine.start()
    drain(engine, 3 * MAX_S)
    engine.stop()
    first_operators = [
        op.name for op in pipeline.operators.values() if set(op.reads) & set(pipeline.feeds)
    ]
    first = [read_records(engine, name) for name in first_operators]
    # the first batches are small
    begin_s = max(records[min(3, len(records) - 2)].committed_at for records in first)
    done = sum(r.rows_in for records in first for r in records if r.committed_at > begin_s)
    all_records = [r for name in pipeline.operators for r in read_records(engine, name)]
    end_s = max(record.committed_at for record in all_records if record.rows_in)
    shutil.rmtree(run)
    return done / (end_s - begin_s)


# --- changes of k


def change_gaps(spark: SparkSession, run: Path, case: Case) -> tuple[list[float], float]:
    """Return the gaps between commits of the main operator around changes of k, and the usual."""
    show_step(f"{case.query}: changes of k")
    pipeline, layout = case.build(), RunLayout(run)
    reads = pipeline.operators[case.operator].reads
    tables = [pa.Table.from_batches(ready_rows(pipeline, name, FED_EVENTS)) for name in reads]
    topics = make_topics(pipeline, layout, reads)
    start_workers(spark, max(CHANGES), run.with_name("warming"))  # as when any run begins
    engine = SparkEngine(spark, case.build_alone(), layout)
    engine.start()
    with TopicFeeder(topics, tables, STEADY):
        engine.advance(4)
        first = next_batch(engine, case.operator) - 4  # before the first change
        for k in CHANGES:
            engine.apply(Plan(replicas={case.operator: k}))
            engine.advance(2.5)
    engine.stop()
    assert not engine.operator_errors, engine.operator_errors
    gaps = commit_gaps(read_records(engine, case.operator, first))
    shutil.rmtree(run)
    return gaps


if __name__ == "__main__":
    sys.exit(main())
