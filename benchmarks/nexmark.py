"""Nexmark's queries beside plain Structured Streaming, in one run, in the thesis' variant.

A plain query reads the very topics that the query's own operator reads, ready-made Arrow files,
only the columns that it needs, two tasks and about a second a batch like ours; stateful ones keep
their state in RocksDB, two partitions, changelog checkpoints. Its rows end in the noop sink; ours
are written to a topic, durable. The whole pipeline begins with events of all fields and has three
hops (four in query 3); it is given beside the same plain query. What a plain query could read at
most is measured beside it: rows that go from the files, or from the generator, straight to the noop
sink. A whole pipeline is timed while its batches still grow, which for persons and auctions, of
which there are few, is most of the time. Ratios of queries 1, 2 and 11 are medians of three rounds
in which both take turns; the others have one round.

    python benchmarks/nexmark.py [QUERY ...]
"""

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.port import Plan
from penstock.engines.spark.cluster.session import end_session, start_session
from penstock.engines.spark.cluster.worker_pool import start_workers
from penstock.engines.spark.engine import SparkEngine
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.native_state.repartition import native_settings, settings
from penstock.engines.spark.run_layout import RunLayout
from penstock.nexmark.event_order import BIDS
from penstock.nexmark.events import BID_FIELDS
from penstock.nexmark.queries import QUERIES
from penstock.nexmark.spark_source import NexmarkSource
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import without_event
from sides.event_topics import SETTING, TopicFeeder, fill, make_topics, ready_rows, whole_events
from sides.plain import plain_q1, plain_q2, plain_q3, plain_q5, plain_q8, plain_q11
from sides.timing import commit_gaps, show_step

#: A full topic is worked on for so many full batches, or so many seconds, or until it is empty.
FULL, MAX_S = 4, 30.0
#: Batches of fewer rows are still growing: most of their time is not for rows.
MIN_ROWS = 20_000
#: Tasks of a plain query and replicas of an operator; seconds of a batch.
TASKS, BATCH_S = 2, 1.0
#: Rows/s while k changes, to what, and events that are enough for it.
STEADY, CHANGES, ENOUGH = 50_000, (5, 2, 4), 1_500_000
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
        for query, figure, measured, aim in queries(spark, place, cases):
            print(f"| {query} | {figure} | {measured} | {aim} |", flush=True)
        end_session(spark)
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One query."""

    query: str
    #: The operator that does what the query is about.
    own: str
    #: What it does, given a frame for each topic that the operator reads.
    plain: Callable[..., DataFrame]
    #: Events that its topics hold, and how often these are read again.
    events: int
    again: int = 1
    rounds: int = 3
    aim: str = "said"

    def pipeline(self) -> Pipeline:
        """All of it."""
        pipeline: Pipeline = QUERIES[self.query].build("thesis", SETTING)
        return pipeline

    def alone(self) -> Pipeline:
        """The query's own operator with its topics."""
        whole, alone = self.pipeline(), Pipeline(self.query)
        operator = whole.operators[self.own]
        for name in (*operator.reads, str(operator.writes)):
            is_read = name in operator.reads
            alone.declared[name] = replace(whole.topics[name], external=is_read, keep="1 day")
        options = replace(operator.options, replicas=TASKS)
        alone.operators[self.own] = replace(operator, options=options, topics=alone.declared)
        return alone


#: Rows and seconds.
Batch = tuple[int, float]

AIM = ">= 0.8"
CASES = (
    Case(query="q1", own="mapper", plain=plain_q1, events=4_000_000, again=20, aim=AIM),
    Case(query="q2", own="filter", plain=plain_q2, events=4_000_000, again=20, aim=AIM),
    Case(query="q11", own="window", plain=plain_q11, events=24_000_000, aim=AIM),
    Case(query="q3", own="join", plain=plain_q3, events=24_000_000, rounds=1),
    Case(query="q5", own="window", plain=plain_q5, events=12_000_000, rounds=1),
    Case(query="q8", own="join", plain=plain_q8, events=24_000_000, rounds=1),
)


# --- rows a second


def queries(
    spark: SparkSession, place: Path, cases: Sequence[Case]
) -> Iterator[tuple[str, str, str, str]]:
    """Each query: its own operator, the whole pipeline, and changes of k."""
    shared = whole_topics(place / "whole")
    for case in cases:
        show_step(f"{case.query}: filling topics")
        operator = case.pipeline().operators[case.own]
        filled = RunLayout(place / case.query)
        topics = make_topics(case.pipeline(), filled, operator.reads)
        for topic in topics:
            fill(topic, ready_rows(case.pipeline(), topic.name, case.events), case.again)
        paths = [topic.directory for topic in topics]
        ours, plain = [], []
        for number in range(case.rounds):
            ours.append(own_rate(spark, place / f"{case.query}-own-{number}", case, paths))
            plain.append(plain_rate(spark, place / f"{case.query}-plain-{number}", case, paths))
        ratio = statistics.median(a / b for a, b in zip(ours, plain, strict=True))
        usual = statistics.median(plain)
        yield (
            case.query,
            f"own operator (`{case.own}`) / plain query",
            f"**{ratio:.2f}** ({_millions(statistics.median(ours))} / {_millions(usual)})",
            case.aim,
        )
        if len(paths) == 1:
            same = replace(case, plain=_as_they_are)
            source = plain_rate(spark, place / f"{case.query}-source", same, paths)
            yield case.query, "plain source alone, from files", _millions(source), "said"
        if case.query == "q1":
            made = generated_rate(spark, place / "generated", source)
            yield case.query, "plain source alone, from the generator", _millions(made), "said"
        shutil.rmtree(filled.run)
        for path in place.glob(f"{case.query}-*"):
            shutil.rmtree(path)
        whole = whole_rate(spark, place / f"whole-{case.query}", case, shared)
        yield (
            case.query,
            "whole pipeline / plain query",
            f"{whole / usual:.2f} ({_millions(whole)} / {_millions(usual)})",
            "said",
        )
        around, between = change_gaps(spark, place / f"changes-{case.query}", case)
        yield (
            case.query,
            f"longest gap between commits around a change of k of `{case.own}` / usual gap",
            f"**{max(around) / between:.2f}** ({max(around):.2f} / {between:.2f} s)",
            "<= 1.5",
        )


def _millions(rate: float) -> str:
    return f"{rate / 1e6:.2f} M rows/s"


def own_rate(spark: SparkSession, run: Path, case: Case, topics: list[Path]) -> float:
    """Rows a second of a query's own operator on full topics."""
    show_step(f"{case.query}: own operator")
    engine = SparkEngine(spark, case.alone(), _linked(run, topics))
    engine.start()
    while not is_enough(found := full_batches(_seconds(records_of(engine, case.own)))):
        if engine.is_drained or engine.at > MAX_S:
            break
        engine.advance(0.25)
        assert not engine.operator_errors, engine.operator_errors
    engine.stop()
    return rate(found)


def _seconds(records: Sequence[BatchRecord]) -> list[Batch]:
    """Rows of each batch, and how long it was from the commit before to its own."""
    return [(b.rows_in, b.committed_at - a.committed_at) for a, b in pairwise(records)]


def full_batches(batches: Iterable[Batch]) -> list[Batch]:
    """Leave out those that still grow, and a rest at the end."""
    found = list(batches)
    usual = max((count for count, _ in found), default=0)
    return [batch for batch in found if batch[0] > 0.6 * usual]


def is_enough(full: Sequence[Batch]) -> bool:
    """Whether batches have stopped growing: several are alike, and not by their fixed costs."""
    return len(full) >= FULL and min(count for count, _ in full) >= MIN_ROWS


def rate(batches: Sequence[Batch]) -> float:
    """Rows a second."""
    return sum(count for count, _ in batches) / sum(seconds for _, seconds in batches)


def _linked(run: Path, topics: Sequence[Path]) -> RunLayout:
    """A run that reads topics which are there already."""
    layout = RunLayout(run)
    for path in topics:
        link = layout.topic(path.name)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    return layout


def records_of(engine: SparkEngine, name: str, first: int = 0) -> list[BatchRecord]:
    """What an operator did."""
    log = BatchLog(engine.layout.batches(name))
    return [record for record in log.read_new() if record.batch >= first and record.tasks]


def plain_rate(spark: SparkSession, place: Path, case: Case, topics: list[Path]) -> float:
    """Rows a second of a plain query over the same topics."""
    show_step(f"{case.query}: {case.plain.__name__}")
    reader = spark.readStream.format(TopicRows.name())
    frames = [reader.option("topic", str(topic)).load() for topic in topics]
    return _streamed(spark, place, case.plain(*frames))


def generated_rate(spark: SparkSession, place: Path, most: float) -> float:
    """Rows a second of the generator as a source: numbers of bids."""
    show_step("the generator as a source")
    options = {"kind": "bids", "hot": "off", "columns": ", ".join(BID_FIELDS), "partitions": TASKS}
    reader = spark.readStream.format(NexmarkSource.name()).options(**options)
    return _streamed(spark, place, reader.option("rowsPerBatch", int(most * BATCH_S)).load())


def _as_they_are(frame: DataFrame) -> DataFrame:
    return frame


def _streamed(spark: SparkSession, place: Path, frame: DataFrame) -> float:
    writer = frame.writeStream.format("noop").outputMode("append")
    with settings(spark, native_settings(TASKS)):
        query = writer.option("checkpointLocation", str(place / "checkpoint")).start()
    seen: dict[int, Batch] = {}
    deadline = time.monotonic() + MAX_S
    while time.monotonic() < deadline and not is_enough(found := full_batches(seen.values())):
        time.sleep(0.1)
        for progress in query.recentProgress:
            if progress["numInputRows"] and progress["batchId"] > 1:
                took_s = progress["durationMs"]["triggerExecution"] / 1000
                seen[progress["batchId"]] = (progress["numInputRows"], took_s)
        if query.exception():
            raise RuntimeError(query.exception())
        if seen and not (query.status["isDataAvailable"] or query.status["isTriggerActive"]):
            break
    query.stop()
    shutil.rmtree(place)
    return rate(found)


class TopicRows(DataSource):
    """The rows of a topic without stamps, two tasks a batch, for plain queries."""

    @classmethod
    def name(cls) -> str:
        return "topic-rows"

    def schema(self) -> StructType:
        topic = Topic.open(Path(self.options["topic"]))
        return from_arrow_schema(without_event(topic.schema), False)

    def streamReader(self, schema: StructType) -> "TopicRowsReader":  # noqa: N802, ARG002
        return TopicRowsReader(self.options["topic"])


class TopicRowsReader(DataSourceStreamReader):
    """Takes as many rows as are done in about a second, by what the last batch took."""

    def __init__(self, topic: str) -> None:
        self.topic, self.size, self.asked, self.at = topic, 50_000.0, 0.0, -1

    def initialOffset(self) -> dict[str, int]:  # noqa: N802
        return {"at": 0}

    def latestOffset(self, start: dict[str, int], limit: Any) -> dict[str, int]:  # noqa: N802, ARG002
        now, at = time.monotonic(), start["at"]
        if at > self.at > -1:
            took = now - self.asked
            self.size *= min(max(BATCH_S / took, 0.5), 4.0)
        if at > self.at:
            self.asked, self.at = now, at
        return {"at": min(at + int(self.size), Topic.open(Path(self.topic)).end)}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        cuts = np.linspace(start["at"], end["at"], TASKS + 1).astype(int).tolist()
        return [InputPartition(pair) for pair in pairwise(cuts)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        topic = Topic.open(Path(self.topic))
        names = without_event(topic.schema).names
        for batch in topic.read(*partition.value, names):
            yield pa.RecordBatch.from_arrays(batch.columns, names=names)


# --- all hops


def whole_topics(run: Path) -> dict[str, Path]:
    """Topics of whole events, as all pipelines read them."""
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
    """Rows a second from the first topic to the end of the last operator's work."""
    show_step(f"{case.query}: whole pipeline")
    pipeline = case.pipeline()
    layout = _linked(run, [topics[name] for name in pipeline.feeds])
    engine = SparkEngine(spark, pipeline, layout)
    engine.start()
    while not engine.is_drained and engine.at < 3 * MAX_S:
        engine.advance(0.25)
        assert not engine.operator_errors, engine.operator_errors
    engine.stop()
    first_operators = [
        op.name for op in pipeline.operators.values() if set(op.reads) & set(pipeline.feeds)
    ]
    first = [records_of(engine, name) for name in first_operators]
    # from when batches are about as large as they become
    begun = max(records[min(3, len(records) - 2)].committed_at for records in first)
    done = sum(r.rows_in for records in first for r in records if r.committed_at > begun)
    all_records = [r for name in pipeline.operators for r in records_of(engine, name)]
    ended = max(record.committed_at for record in all_records if record.rows_in)
    shutil.rmtree(run)
    return done / (ended - begun)


# --- changes of k


def change_gaps(spark: SparkSession, run: Path, case: Case) -> tuple[list[float], float]:
    """Gaps between commits of the own operator around changes of k, and the usual one."""
    show_step(f"{case.query}: changes of k")
    pipeline, layout = case.pipeline(), RunLayout(run)
    reads = pipeline.operators[case.own].reads
    made = [pa.Table.from_batches(ready_rows(pipeline, name, ENOUGH)) for name in reads]
    topics = make_topics(pipeline, layout, reads)
    start_workers(spark, max(CHANGES), run.with_name("warming"))  # as when any run begins
    engine = SparkEngine(spark, case.alone(), layout)
    engine.start()
    with TopicFeeder(topics, made, STEADY):
        engine.advance(4)
        first = engine.trackers[case.own].log.next - 4  # before the first change
        for k in CHANGES:
            engine.apply(Plan(replicas={case.own: k}))
            engine.advance(2.5)
    engine.stop()
    assert not engine.operator_errors, engine.operator_errors
    found = commit_gaps(records_of(engine, case.own, first))
    shutil.rmtree(run)
    return found


if __name__ == "__main__":
    sys.exit(main())
