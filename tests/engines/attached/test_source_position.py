"""Offsets become rows: what was read, what waits, and what arrives meanwhile."""

import pytest
from tests.engines.attached.reports import kafka, plain

from penstock.engines.attached.progress import SourceProgress, parse_progress
from penstock.engines.attached.source_offsets import count_offsets
from penstock.engines.attached.source_position import SourcePosition


def read(source: dict[str, object]) -> SourceProgress:
    progress = parse_progress(
        {"batchId": 1, "timestamp": "2026-01-01T00:00:00.000Z", "sources": [source]}
    )
    assert progress is not None
    return progress.sources[0]


def position(**fields: object) -> SourcePosition:
    return SourcePosition(name="q/0", window_s=60.0, **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        pytest.param(kafka([0, 5], [10, 7], [20, 7]), (12, 10, True), id="Kafka: by partition"),
        pytest.param(kafka(None, [10, 7], [20, 7]), (None, 10, True), id="Kafka: the first batch"),
        pytest.param(plain(4, 6, 9, 200), (2, 3, False), id="rate: seconds"),
        pytest.param(plain("4", "6", "9", 200), (2, 3, False), id="numbers as text"),
        pytest.param(
            plain(
                {"offset": 10, "timestamp": 1000},
                {"offset": 20, "timestamp": 2000},
                {"offset": 20, "timestamp": 2000},
                10,
                "RatePerMicroBatchStream[rowsPerBatch=10]",
            ),
            (10, 0, False),
            id="rate by batch: the time does not count",
        ),
        pytest.param(
            plain(
                {"at": {"images": 5}, "skips": {}},
                {"at": {"images": 9}, "skips": {}},
                {"at": {"images": 30}, "skips": {}},
                2,
            ),
            (4, 21, True),
            id="topics of Penstock: rows, whatever Spark counted",
        ),
        pytest.param(
            plain({"logOffset": 1}, {"logOffset": 2}, None, 50, "FileStreamSource[file:/in]"),
            (None, None, False),
            id="files: the offset counts batches",
        ),
        pytest.param(plain(None, None, None, 5), (None, None, False), id="no offsets at all"),
    ],
)
def test_offsets_are_counted_by_source(source, expected):
    count = count_offsets(read(source))
    assert (count.read, count.waiting, count.are_rows) == expected


def test_a_metric_of_files_that_wait_is_the_backlog():
    source = plain(None, None, None, 5) | {"metrics": {"numFilesOutstanding": "12"}}
    count = count_offsets(read(source))
    assert (count.waiting, count.unit) == (12, "files")


def test_partitions_show_what_each_one_had():
    assert count_offsets(read(kafka([0, 5], [10, 7], [20, 7]))).partitions == (10, 2)


def test_the_offered_rate_is_that_of_latest_offsets_and_not_the_query_s_own_speed():
    source = position()
    source.take(read(kafka([0], [100], [1000])), 0.0, is_batch=True)
    source.take(read(kafka([100], [200], [6000])), 10.0, is_batch=True)
    assert source.rate == 500.0  # it read only 10 rows/s
    assert source.end - source.taken == 5800


def test_rows_keep_arriving_while_a_long_batch_is_silent():
    source = position()
    source.take(read(kafka([0], [100], [100])), 0.0, is_batch=True)
    source.take(read(kafka([100], [1100], [1100])), 10.0, is_batch=True)
    source.extrapolate(47.0)
    assert source.end - source.taken == 3700  # 37 s at 100 rows/s


def test_a_rate_source_counts_seconds_which_become_rows():
    source = position()
    source.take(read(plain(0, 2, 2, 400)), 0.0, is_batch=True)
    source.take(read(plain(2, 4, 7, 400)), 5.0, is_batch=True)
    assert source.end - source.taken == 600  # 3 s wait, 200 rows each


def test_a_retried_stage_does_not_count_rows_twice():
    source = position()
    doubled = kafka([0], [100], [100]) | {"numInputRows": 200}
    assert source.take(read(doubled), 0.0, is_batch=True) == (0, 100)


def test_a_topic_that_was_made_again_offers_nothing_for_a_moment():
    source = position()
    source.take(read(kafka([0], [900], [1000])), 0.0, is_batch=True)
    source.take(read(kafka([0], [5], [5])), 10.0, is_batch=True)
    assert source.rate is not None
    assert source.rate >= 0
    assert source.end >= source.taken


def test_an_unknown_backlog_stays_unknown_and_offers_what_is_read():
    source = position()
    source.take(read(plain(None, None, None, 100)), 0.0, is_batch=True)
    source.take(read(plain(None, None, None, 300)), 10.0, is_batch=True)
    assert not source.has_backlog
    assert source.rate == 30.0
    assert source.end == source.taken
