"""Reports of Spark are read whatever is missing in them."""

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engines.attached.reports import BEGAN, kafka, make_report

from penstock.engines.attached.progress import parse_progress
from penstock.engines.attached.query_snapshot import build_query_snapshot
from penstock.engines.attached.query_tracker import QueryTracker

RECORDED = Path(__file__).parents[2] / "recorded" / "progress"


def test_a_report_gives_times_in_seconds():
    progress = parse_progress(make_report(3, 12.5, work_s=2.0, overhead_s=0.5))
    assert progress is not None
    assert (progress.batch, progress.started_at) == (3, BEGAN + 12.5)
    assert (progress.work_s, progress.duration_s) == (2.0, 2.5)
    assert progress.ended_at == BEGAN + 15.0


def test_state_is_the_sum_of_all_stateful_operators():
    states = [
        {
            "numRowsTotal": 10,
            "memoryUsedBytes": 100,
            "commitTimeMs": 500,
            "numShufflePartitions": 4,
        },
        {"numRowsTotal": 5, "memoryUsedBytes": "60", "commitTimeMs": None},
    ]
    progress = parse_progress(make_report(1, 0.0, stateOperators=states))
    assert progress is not None
    assert progress.state is not None
    assert (progress.state.rows, progress.state.memory_bytes) == (15, 160)
    assert (progress.state.commit_s, progress.state.partitions) == (0.5, 4)


@pytest.mark.parametrize(
    "report",
    [
        pytest.param(None, id="null"),
        pytest.param([], id="a list"),
        pytest.param({}, id="empty"),
        pytest.param({"batchId": 1}, id="without a time"),
        pytest.param({"batchId": 1, "timestamp": "yesterday"}, id="with a time nobody can read"),
        pytest.param({"batchId": None, "timestamp": "2026-01-01T00:00:00Z"}, id="without a batch"),
    ],
)
def test_a_report_without_batch_or_time_says_nothing(report):
    assert parse_progress(report) is None


def test_unknown_counts_are_none_and_never_zero():
    source = {"numInputRows": -1, "startOffset": "not json", "endOffset": None}
    progress = parse_progress(make_report(1, 0.0, sources=[source]))
    assert progress is not None
    assert (progress.sources[0].rows, progress.sources[0].start) == (None, None)


def test_a_trigger_without_a_batch_has_no_work():
    progress = parse_progress(make_report(4, 0.0, work_s=None))
    assert progress is not None
    assert progress.work_s is None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["durationMs", "sources", "stateOperators", "runId", "batchId", "timestamp"]
)


@given(st.dictionaries(FIELDS, JSON))
def test_no_report_breaks_the_tracker(broken):
    tracker = QueryTracker(name="q", window_s=60.0, batch_s=5.0, max_executors=4, executors=1)
    good = [make_report(n, 5.0 * n, sources=[kafka([n], [n + 1], [9])]) for n in range(3)]
    for report in (good[0], {**good[1], **broken}, good[2]):
        tracker.take(report)
    tracker.update(BEGAN + 20.0, is_working=True)
    shown = build_query_snapshot(tracker, BEGAN + 20.0)
    for value in (shown.busy, shown.queue, shown.input_rate):
        assert value is None or (math.isfinite(value) and value >= 0)
    assert tracker.offered_rate is None or tracker.offered_rate >= 0


@pytest.mark.parametrize("path", sorted(RECORDED.glob("*.json")), ids=lambda path: path.stem)
def test_every_recorded_report_can_be_read(path):
    reports = json.loads(path.read_text(encoding="utf-8"))
    progress = [parse_progress(report) for report in reports]
    assert len(progress) >= 3
    assert all(each is not None and each.duration_s >= 0 for each in progress)
