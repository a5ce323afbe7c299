"""Event times of rows that come from outside."""

from datetime import UTC, datetime

import pyarrow as pa

from penstock.engines.spark.kinds.frame_task import read_event_times
from penstock.topics.ddl import TIMESTAMP

NOW = datetime(2026, 1, 2, tzinfo=UTC)
OLD = datetime(1965, 7, 1, tzinfo=UTC)


def test_rows_keep_the_event_time_that_is_named() -> None:
    later = datetime(1965, 7, 2, tzinfo=UTC)
    batch = pa.record_batch({"ts": pa.array([OLD, None, later], TIMESTAMP)})
    # a null does not bring an old backlog to the present
    assert read_event_times(batch, "ts", NOW.timestamp()).to_pylist() == [OLD, later, later]


def test_rows_of_which_none_has_a_time_have_that_of_their_arrival() -> None:
    batch = pa.record_batch({"ts": pa.array([None, None], TIMESTAMP)})
    assert read_event_times(batch, "ts", NOW.timestamp()).to_pylist() == [NOW, NOW]


def test_times_without_a_zone_are_utc() -> None:
    batch = pa.record_batch({"ts": pa.array([OLD.replace(tzinfo=None)], pa.timestamp("us"))})
    assert read_event_times(batch, "ts", 0.0).to_pylist() == [OLD]


def test_without_a_name_rows_have_the_time_of_their_arrival() -> None:
    batch = pa.record_batch({"ts": pa.array([OLD, OLD], TIMESTAMP)})
    assert read_event_times(batch, None, NOW.timestamp()).to_pylist() == [NOW, NOW]
