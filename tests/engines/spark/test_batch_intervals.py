"""How closely batches of a run follow each other."""

from collections.abc import Iterator

import pytest

from penstock.engines.microbatch.batch_interval import OverheadLimit
from penstock.engines.spark.batch_intervals import PERIOD_S, BatchIntervals, make_intervals
from penstock.engines.spark.cluster.process_times import ProcessTimes
from penstock.engines.spark.operator_config import BatchTiming

LIMIT = OverheadLimit(share=0.2, cores=2)


def _times(seconds: Iterator[float]) -> ProcessTimes:
    own = next(seconds)
    return ProcessTimes(own_s=own, jvm_s=2 * own, python_s=900.0, planners_s=own)


def test_the_interval_follows_the_cost_of_batches_without_that_of_rows() -> None:
    # driver, JVM and sources take 4 x 0.2 s in a period: 0.04 s for each of its 20 batches
    seconds = iter([0.0, 0.2, 0.4, 0.6])
    intervals = BatchIntervals(LIMIT, 0.5, lambda: _times(seconds))
    assert not intervals.update(0.0, {"a": 7, "b": 3})
    assert not intervals.update(PERIOD_S / 2, {"a": 12, "b": 8})
    assert intervals.update(PERIOD_S, {"a": 17, "b": 13})
    assert intervals.interval_s == pytest.approx(0.04 * 2 / 0.4)
    assert not intervals.update(2 * PERIOD_S, {"a": 27, "b": 23})


def test_idle_operators_leave_room_for_the_others() -> None:
    seconds = iter([0.0, 0.2])
    intervals = BatchIntervals(LIMIT, 0.5, lambda: _times(seconds))
    intervals.update(0.0, {"a": 0, "b": 0, "c": 0})
    intervals.update(PERIOD_S, {"a": 20, "b": 0, "c": 0})
    assert intervals.interval_s == pytest.approx(0.04 / 0.4)


def test_a_fixed_interval_is_not_measured() -> None:
    assert make_intervals(BatchTiming()) is None
    measured = make_intervals(BatchTiming(overhead_share=0.2))
    assert measured is not None
    assert measured.interval_s == BatchTiming().min_interval_s
