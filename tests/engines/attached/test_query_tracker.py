"""A query's reports become batch records, a snapshot, and a judgement of each change."""

import pytest
from tests.engines.attached.reports import BEGAN, kafka, make_report, plain

from penstock.engines.attached.query_snapshot import build_query_snapshot
from penstock.engines.attached.query_tracker import JUDGED_AFTER, QueryTracker
from penstock.engines.attached.task_facts import StageFacts, TaskFacts
from penstock.engines.query_events import ExecutorEffectEvent


def make_tracker(executors: int = 2, batch_s: float = 10.0) -> QueryTracker:
    return QueryTracker(
        name="words", window_s=60.0, batch_s=batch_s, max_executors=8, executors=executors
    )


def feed(
    tracker: QueryTracker,
    batches: int,
    *,
    first: int = 0,
    work_s: float = 4.0,
    rows: int = 1000,
    backlog: int = 0,
    every_s: float = 10.0,
    facts: TaskFacts | None = None,
) -> float:
    """Feed batches that begin every `every_s`; return the time after the last."""
    for number in range(first, first + batches):
        start, end = number * rows, (number + 1) * rows
        source = kafka([start], [end], [end + backlog])
        tracker.take(make_report(number, number * every_s, work_s=work_s, sources=[source]), facts)
        tracker.update(BEGAN + number * every_s + work_s + 0.2, is_working=True)
    return BEGAN + (first + batches) * every_s


def observe(tracker: QueryTracker, now: float, *, is_working: bool = False):
    tracker.update(now, is_working=is_working)
    return build_query_snapshot(tracker, now, is_working=is_working)


def test_a_query_that_works_four_of_ten_seconds_is_busy_by_that_share():
    tracker = make_tracker()
    shown = observe(tracker, feed(tracker, 12))
    assert shown.busy == pytest.approx(0.42, abs=0.02)  # and the overhead of batches
    assert shown.input_rate == pytest.approx(100.0, rel=0.1)
    assert shown.true_rate == pytest.approx(1000 / 4 / 2, rel=0.15)  # of one of two executors
    assert tracker.offered_rate == pytest.approx(100.0)


def test_the_backlog_is_known_in_rows_and_seconds():
    tracker = make_tracker()
    now = feed(tracker, 6, backlog=700)
    shown = observe(tracker, now)
    assert shown.queue == pytest.approx(700 + 1000, abs=5)  # and 10 s of arrivals since then
    assert shown.extra["backlog_s"] == pytest.approx(17.0, abs=0.1)
    assert shown.extra["backlog"] == "offsets"


def test_batch_records_have_executors_as_replicas_and_what_waited():
    tracker = make_tracker(executors=3)
    feed(tracker, 2, backlog=50)
    record = tracker.operator.records[-1]
    assert (record.replicas, record.rows_in, record.waiting) == (3, 1000, 1050)
    assert record.committed_at - record.planned_at == pytest.approx(4.2)


def test_rows_are_as_old_as_their_arrival_between_two_reports():
    tracker = make_tracker()
    feed(tracker, 6)
    ages = [
        record.committed_at - second
        for record in list(tracker.operator.records)[1:]
        for second, _ in record.events
    ]
    # a row arrives up to 10 s before its batch, which takes 4.2 s
    assert 4.2 - 1e-6 <= min(ages) < 6.0
    assert 12.0 < max(ages) <= 14.3


def test_a_silent_batch_keeps_the_query_busy_and_the_queue_growing():
    tracker = make_tracker(batch_s=2.0)
    end = feed(tracker, 12)
    shown = observe(tracker, end + 37.0, is_working=True)
    assert shown.busy == 1.0
    assert shown.extra["silent_s"] == pytest.approx(37.0 + 5.8)
    assert shown.queue == pytest.approx(4700, abs=10)
    assert shown.input_rate == pytest.approx(100.0, rel=0.2)  # not diluted by the silence


def test_a_query_whose_batches_are_longer_than_the_window_is_not_idle():
    tracker = QueryTracker(name="words", window_s=10.0, batch_s=5.0, max_executors=8, executors=1)
    for number in range(5):
        start, end = number * 1000, (number + 1) * 1000
        source = kafka([start], [end], [end])
        tracker.take(make_report(number, number * 20.0, work_s=19.5, sources=[source]))
        tracker.update(BEGAN + number * 20.0 + 19.8, is_working=True)
    shown = observe(tracker, BEGAN + 118.0, is_working=True)  # 18 s into the next batch
    assert shown.busy == pytest.approx(1.0, abs=0.02)
    assert shown.input_rate == pytest.approx(50.0, rel=0.05)


def test_an_idle_query_is_not_silent_and_its_queue_does_not_grow_for_ever():
    tracker = make_tracker(batch_s=2.0)
    end = feed(tracker, 6)
    shown = observe(tracker, end + 300.0, is_working=False)
    assert "silent_s" not in shown.extra
    assert shown.queue == 0


def test_without_a_backlog_the_snapshot_says_so():
    tracker = make_tracker()
    for number in range(4):
        source = plain(None, None, None, 500)
        tracker.take(make_report(number, number * 10.0, sources=[source]))
    shown = observe(tracker, BEGAN + 40.0)
    assert (shown.queue, shown.queue_growth) == (None, None)
    assert str(shown.extra["backlog"]).startswith("trigger delay")
    assert shown.extra["trigger_delay_s"] == 0.0
    assert tracker.offered_rate == pytest.approx(50.0)


def test_without_a_backlog_the_queue_is_what_arrives_during_the_trigger_delay():
    tracker = make_tracker(batch_s=2.0)
    for number in range(4):
        report = make_report(
            number, number * 5.0, work_s=4.8, sources=[plain(None, None, None, 500)]
        )
        tracker.take(report)
    shown = observe(tracker, BEGAN + 20.0)
    assert shown.extra["trigger_delay_s"] == pytest.approx(3.0)
    assert shown.queue == pytest.approx(300.0)  # 3 s at 100 rows/s


def test_a_trigger_without_a_batch_is_no_batch_but_moves_the_end():
    tracker = make_tracker()
    feed(tracker, 2)
    idle = make_report(1, 25.0, work_s=None, sources=[kafka([2000], [2000], [2600])])
    assert not tracker.take(idle)
    tracker.update(BEGAN + 25.5, is_working=False)
    assert len(tracker.operator.records) == 2
    assert tracker.operator.offered - tracker.operator.taken >= 600


def test_the_same_report_counts_once():
    tracker = make_tracker()
    report = make_report(0, 0.0, sources=[kafka([0], [10], [10])])
    assert tracker.take(report)
    assert not tracker.take(report)
    tracker.update(BEGAN + 5.0, is_working=False)
    assert tracker.operator.rows_in == 10


def test_a_restarted_query_goes_on_from_where_it_was():
    tracker = make_tracker()
    feed(tracker, 3)
    # another run of the query reads what arrived while it was down
    report = make_report(3, 130.0, sources=[kafka([3000], [4000], [13_000])], runId="b2")
    assert tracker.take(report)
    tracker.update(BEGAN + 131.2, is_working=False)
    assert tracker.operator.rows_in == 4000
    assert tracker.sources[0].end == pytest.approx(13_000, abs=200)


def test_state_rows_and_bytes_are_shown():
    tracker = make_tracker()
    states = [{"numRowsTotal": 7, "memoryUsedBytes": 900, "commitTimeMs": 5}]
    tracker.take(make_report(0, 0.0, sources=[kafka([0], [9], [9])], stateOperators=states))
    shown = observe(tracker, BEGAN + 5.0)
    assert (shown.extra["state_rows"], shown.extra["state_bytes"]) == (7, 900)


# --- changes


def test_new_executors_are_judged_after_ten_batches_and_unknown_before():
    tracker = make_tracker(executors=1)
    feed(tracker, 5, work_s=5.0)
    tracker.begin_probation(1, 3, BEGAN + 50.0)
    tracker.share(3)
    # cold workers: the first batch takes far longer, the last ones a third of the time
    feed(tracker, 1, first=5, work_s=9.0)
    shown = observe(tracker, BEGAN + 60.0)
    assert (shown.busy, shown.service_time_s) == (None, None)
    assert shown.extra["judged"] == "1 of 10 batches"
    feed(tracker, JUDGED_AFTER - 2, first=6, work_s=2.0)
    assert tracker.probation is not None
    feed(tracker, 1, first=14, work_s=2.0)
    assert tracker.probation is None
    shown = observe(tracker, BEGAN + 150.0)
    assert shown.busy is not None
    assert len(tracker.operator.records) == 3  # the cold ones are forgotten


def test_two_long_batches_are_enough_to_judge_new_executors():
    """A query that cannot keep up has batches of half a minute: ten of them are five minutes."""
    tracker = make_tracker(executors=1)
    feed(tracker, 5, work_s=5.0)
    tracker.begin_probation(1, 2, BEGAN + 145.0)
    tracker.share(2)
    feed(tracker, 1, first=5, every_s=30.0, work_s=29.0)
    assert tracker.probation is not None
    feed(tracker, 1, first=6, every_s=30.0, work_s=29.0)
    assert tracker.probation is None


def test_the_effect_of_a_change_is_the_speed_of_batches_before_and_after():
    tracker = make_tracker(executors=1)
    feed(tracker, 5, work_s=5.0)
    tracker.begin_probation(1, 3, BEGAN + 50.0)
    tracker.share(3)
    for number in range(5, 5 + JUDGED_AFTER):
        source = kafka([number * 1000], [(number + 1) * 1000], [(number + 1) * 1000])
        tracker.take(make_report(number, number * 10.0, work_s=2.0, sources=[source]))
    events = tracker.update(BEGAN + 152.0, is_working=False)
    effects = [event for event in events if isinstance(event, ExecutorEffectEvent)]
    assert [(e.before, e.executors, e.speed_before, e.speed) for e in effects] == [
        (1, 3, 200.0, 500.0)
    ]


def test_a_change_is_judged_after_two_minutes_even_if_batches_are_slow():
    tracker = make_tracker(executors=1)
    feed(tracker, 5)
    tracker.begin_probation(1, 2, BEGAN + 50.0)
    tracker.share(2)
    tracker.update(BEGAN + 171.0, is_working=True)
    assert tracker.probation is None


def test_one_slow_task_limits_the_executors_that_help():
    tracker = make_tracker(executors=2)
    hot = TaskFacts(stages=(StageFacts(tasks=8, run_s=6.0, longest_s=3.5, median_s=0.3),))
    now = feed(tracker, 6, facts=hot)
    shown = observe(tracker, now)
    assert shown.useful_parallelism == 2
    assert shown.extra["skew"] == pytest.approx(11.67)
    even = TaskFacts(stages=(StageFacts(tasks=64, run_s=7.5, longest_s=0.2, median_s=0.1),))
    other = make_tracker(executors=2)
    assert observe(other, feed(other, 6, facts=even)).useful_parallelism is None


def test_the_processor_time_of_tasks_is_the_cpu_share():
    tracker = make_tracker(executors=2)
    facts = TaskFacts(stages=(StageFacts(tasks=4, run_s=8.0, cpu_s=4.0, longest_s=0.5),))
    shown = observe(tracker, feed(tracker, 6, facts=facts))
    assert shown.cpu == pytest.approx(4.0 / 2 / 10, rel=0.15)
