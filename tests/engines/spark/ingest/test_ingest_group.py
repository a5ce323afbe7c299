"""What waits in front of an ingest is offered to the operators behind it; no JVM is needed."""

import time
from typing import Any

import pyarrow as pa
from tests.tools.recording import task

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_snapshot import build_latency
from penstock.engines.spark.ingest.tracker import Ingests
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.pipeline_monitor import make_tracker
from penstock.engines.spark.queries.builder import make_topics
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.embedded.writer import TopicWriter
from penstock.topics.steady_clock import SteadyClock

#: 200 rows were read from as many offsets, and 450 offsets wait.
KAFKA = {
    "startOffset": '{"bids":{"0":0,"1":0}}',
    "endOffset": '{"bids":{"0":100,"1":100}}',
    "latestOffset": '{"bids":{"0":500,"1":150}}',
    "numInputRows": 200,
    "metrics": {},
}


class Query:
    """A query of Spark's that has had a batch."""

    isActive = True  # noqa: N815  (Spark's name)
    lastProgress = {"batchId": 0, "sources": [KAFKA]}  # noqa: N815, RUF012


def build_pipeline() -> Pipeline:
    """bids -> first, produced -> other: only the first one is behind an ingest."""
    pipeline = Pipeline("open")
    pipeline.topic("raw", "id long")
    pipeline.topic("produced", "id long", external=True)
    for name in ("done", "other-done"):
        pipeline.topic(name, "id long")

    @pipeline.ingest(writes="raw")
    def bids(spark: object) -> object:
        raise AssertionError("nothing starts here")

    @pipeline.batches(reads="raw", writes="done")
    def first(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    @pipeline.batches(reads="produced", writes="other-done")
    def other(batch: pa.RecordBatch) -> pa.RecordBatch:
        return batch

    return pipeline


def test_a_backlog_outside_is_in_the_queue_of_the_operator_behind(layout: RunLayout) -> None:
    pipeline, clock = build_pipeline(), SteadyClock()
    make_topics(pipeline, layout)
    followed = {
        name: make_tracker(layout, pipeline.operators[name], (), 1, BatchTiming(), clock)
        for name in ("first", "other")
    }
    ingests = Ingests(pipeline, layout, 10.0, clock)
    ingests.begin(followed.values())
    queries: Any = {"bids": Query()}
    ingests.take_progress(queries, 1.0)
    ingests.update(followed.values(), 1.0)
    for operator in followed.values():
        operator.update(1.0, 60.0)
    assert {name: one.queues[-1][1] for name, one in followed.items()} == {"first": 450, "other": 0}
    assert ingests.status()["bids"].backlog_rows == 450


def test_behind_an_ingest_latency_counts_from_the_arrival(layout: RunLayout) -> None:
    """Rows keep their event times, which may be years old; no pipeline can be so fast."""
    pipeline, clock = build_pipeline(), SteadyClock()
    make_topics(pipeline, layout)
    with TopicWriter(Topic.open(layout.topic("raw")), "bids") as writer:
        writer.append(pa.table({"id": range(7)}))
    operator = make_tracker(layout, pipeline.operators["first"], (), 1, BatchTiming(), clock)
    ingests = Ingests(pipeline, layout, 10.0, clock)
    ingests.begin([operator])
    now = time.time()
    record = BatchRecord(
        batch=0,
        start={"raw": 0},
        end={"raw": 7},
        planned_at=now,
        committed_at=now + 1,
        tasks=(task(rows=7),),
        events=((0.0, 7),),  # in 1970
    )
    BatchLog(layout.batches("first")).put(record)
    ingests.update([operator], now)
    operator.update(now, 60.0)
    latency = build_latency(operator.new_records)
    assert latency.count == 7
    assert 1 <= latency.max < 60
