"""What an ingest brings, what waits in front of it, and when rows arrived; no JVM is needed."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from penstock.engines.events import BehindEvent, CaughtUpEvent
from penstock.engines.microbatch.arrivals import Arrivals
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.operator_snapshot import compute_arrival_scv
from penstock.engines.spark.ingest.backlog import FileCount, read_backlog
from penstock.engines.spark.ingest.tracker import MIN_BEHIND_S, IngestTracker
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.topics.embedded.segment import Segment


def batch(number: int, *, rows: int, at: float, **more: Any) -> BatchRecord:
    task = TaskRecord(rows_in=rows, rows_out=rows, busy_s=0.1, cpu_s=None, began=at, ended=at)
    return BatchRecord(
        **{
            "batch": number,
            "planned_at": at,
            "committed_at": at + 0.5,
            "tasks": (task,),
            "events": ((1.0, rows),),  # as old as can be
            **more,
        }
    )


def written(rows: int) -> tuple[Segment, ...]:
    return (Segment(file="a.arrow", rows=rows, bytes=1, crc=0),)


# --- arrivals


def test_latency_counts_from_the_arrival_and_not_from_old_event_times() -> None:
    arrivals = Arrivals()
    arrivals.assign_arrivals(batch(0, rows=10, at=100.0, outputs={"raw": written(10)}))
    arrivals.assign_arrivals(batch(1, rows=30, at=200.0, outputs={"raw": written(30)}))
    # half of the rows are filtered out, and the next operator sees the rest of both batches
    middle = batch(0, rows=20, at=201.0, start={"raw": 0}, end={"raw": 40})
    middle = BatchRecord(**{**_fields(middle), "outputs": {"clean": written(20)}})
    assert arrivals.assign_arrivals(middle).events == ((100.0, 5), (200.0, 15))
    last = batch(0, rows=20, at=202.0, start={"clean": 0}, end={"clean": 20})
    assert arrivals.assign_arrivals(last).events == ((100.0, 5), (200.0, 15))
    assert [*arrivals.read("clean", 4, 7)] == [(100.0, 1), (200.0, 2)]


def _fields(record: BatchRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in BatchRecord.__slots__}


def test_event_times_years_apart_are_no_arrivals() -> None:
    sketches = [((-2e9 + 1000.0 * number, 1), (4e9, 1)) for number in range(20)]
    assert compute_arrival_scv(sketches) is None  # and no table of 12 thousand million bins


# --- what waits outside

KAFKA = {
    "description": "KafkaV2[Subscribe[bids]]",
    "startOffset": '{"bids":{"0":0,"1":0}}',
    "endOffset": '{"bids":{"0":100,"1":100}}',
    "latestOffset": '{"bids":{"0":500,"1":150}}',
    "numInputRows": 200,
    "metrics": {"maxOffsetsBehindLatest": "400"},
}
RATE = {"startOffset": "2", "endOffset": "3", "latestOffset": "7", "numInputRows": 10}
DELTA = {"endOffset": "{}", "metrics": {"numFilesOutstanding": "3", "numBytesOutstanding": "9"}}
FILES = {"endOffset": '{"logOffset": 1}', "latestOffset": None, "metrics": {}}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (KAFKA, (450.0, "offsets")),
        (RATE, (4.0, "offsets")),
        (DELTA, (3.0, "files")),
        (FILES, None),
        ({"endOffset": "not JSON", "latestOffset": "["}, None),
    ],
)
def test_what_sources_report(source: Mapping[str, Any], expected: object) -> None:
    backlog = read_backlog(source)
    assert expected == (None if backlog is None else (backlog.amount, backlog.unit))


def make_tracker(home: Path) -> IngestTracker:
    return IngestTracker(
        name="files",
        log=BatchLog(home / "batches"),
        checkpoint=home / "checkpoint",
        window_s=4.0,
        arrivals=Arrivals(),
    )


def test_offsets_become_rows_as_batches_had_them(tmp_path: Path) -> None:
    tracker = make_tracker(tmp_path)
    tracker.take_progress({"batchId": 0, "sources": [RATE]}, 1.0)
    tracker.take_progress({"batchId": 0, "sources": [RATE]}, 2.0)  # the same batch counts once
    assert tracker.status().backlog_rows == 40  # four seconds of ten rows each


def test_an_ingest_that_falls_behind_is_told_once_and_so_is_its_end(tmp_path: Path) -> None:
    tracker, events = make_tracker(tmp_path), []
    for second in range(int(3 * MIN_BEHIND_S)):
        source = {**KAFKA, "latestOffset": json.dumps({"bids": {"0": 100 + 10 * second, "1": 110}})}
        events += tracker.take_progress({"batchId": second, "sources": [source]}, float(second))
    assert [(type(event), event.operator) for event in events] == [(BehindEvent, "files")]
    assert events[0].at >= MIN_BEHIND_S
    assert tracker.status().is_behind
    source = {**KAFKA, "latestOffset": KAFKA["endOffset"]}
    events = tracker.take_progress({"batchId": 99, "sources": [source]}, 99.0)
    assert [type(event) for event in events] == [CaughtUpEvent]
    assert not tracker.status().is_behind


def test_a_backlog_that_shrinks_is_none_to_worry_about(tmp_path: Path) -> None:
    tracker, events = make_tracker(tmp_path), []
    for second in range(int(3 * MIN_BEHIND_S)):
        source = {**RATE, "latestOffset": str(1000 - second)}
        events += tracker.take_progress({"batchId": second, "sources": [source]}, float(second))
    assert not events


def test_files_that_spark_has_not_read_are_counted(tmp_path: Path) -> None:
    """In the layout of Spark's own log: version, then one file a line."""
    data, log = tmp_path / "data in", tmp_path / "checkpoint" / "sources" / "0"
    data.mkdir()
    log.mkdir(parents=True)
    for number in range(5):
        (data / f"{number}.json").write_text("{}")
    for other in ("_SUCCESS", ".5.json.tmp", "README.md"):
        (data / other).write_text("")
    lines = [f'{{"path":"file://{data}/{n}.json","timestamp":1,"batchId":0}}' for n in range(2)]
    (log / "0").write_text("\n".join(["v1", *lines]).replace(" ", "%20"))
    assert FileCount(data, log).count() == 3
    tracker = make_tracker(tmp_path)
    BatchLog(tmp_path / "batches").put(batch(0, rows=50, at=1.0))
    tracker.update(1.0)
    source = {**FILES, "description": f"FileStreamSource[file:{data}]"}
    tracker.take_progress({"batchId": 0, "sources": [source]}, 1.0)
    assert tracker.status()[2:5] == (3.0, "files", 75)
