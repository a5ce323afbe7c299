"""Executors of a default session leave only if they are decommissioned, idle and killed."""

import pytest
from tests.engines.attached.fakes import FakeCalls

from penstock.engines.attached.executor_level import ExecutorLevel
from penstock.engines.attached.executor_shares import count_executors, split_executors
from penstock.engines.attached.foreign_executors import ForeignExecutors
from penstock.engines.attached.idle_executors import BATCHES, IdleExecutors
from penstock.engines.events import Event, ExecutorsReadyEvent, ExecutorsRequestedEvent


def make_level(calls: FakeCalls, *, exits_alone: bool = False) -> ExecutorLevel:
    host = ForeignExecutors(calls, exits_alone=exits_alone)
    level = ExecutorLevel(lambda: sum(calls.alive().values()), (1, 4), host=host)
    level.begin(0.0)
    return level


def settle(level: ExecutorLevel, shares: dict[str, int], begin: float, end: float) -> list[Event]:
    events = []
    for second in range(int(begin), int(end)):
        events += level.update(shares, float(second), is_between=True)
    return events


def test_executors_are_requested_at_once_and_warmed_when_they_register():
    calls = FakeCalls()
    level = make_level(calls)
    events = level.resize({"words": 3}, 1.0)
    assert calls.log == ["total 3"]
    assert isinstance(events[0], ExecutorsRequestedEvent)
    assert (events[0].requested, events[0].needs) == (3, "words 3")
    level.update({"words": 3}, 2.0, is_between=False)
    assert not level.is_settled
    calls.start_missing()
    events = level.update({"words": 3}, 20.0, is_between=False)
    assert calls.log[-1] == "warm 1, 2"
    assert level.is_settled
    assert any(isinstance(event, ExecutorsReadyEvent) for event in events)


def test_a_surplus_executor_is_decommissioned_and_killed_only_when_idle():
    calls = FakeCalls(3)
    level = make_level(calls)
    calls.tasks["2"] = 1
    settle(level, {"words": 2}, 0, 30)
    assert calls.log == ["total 2", "decommission 2"]
    assert level.has_leaving
    calls.tasks["2"] = 0
    settle(level, {"words": 2}, 30, 32)
    # a kill lowers Spark's total, so it is asked for again
    assert calls.log == ["total 2", "decommission 2", "kill 2", "total 2"]
    assert (calls.total, level.alive, level.has_leaving) == (2, 2, False)


def test_more_can_be_had_again_after_a_release():
    calls = FakeCalls(3)
    level = make_level(calls)
    settle(level, {"words": 1}, 0, 30)
    assert list(calls.staying) == ["0"]
    level.resize({"words": 4}, 31.0)
    calls.start_missing()
    settle(level, {"words": 4}, 32, 34)
    assert level.alive == 4


def test_spark_ends_executors_itself_where_decommissioning_is_enabled():
    calls = FakeCalls(2)
    level = make_level(calls, exits_alone=True)
    settle(level, {"words": 1}, 0, 30)
    assert calls.log == ["total 1", "decommission 1"]


def test_nothing_is_released_while_a_batch_runs():
    calls = FakeCalls(3)
    level = make_level(calls)
    for second in range(60):
        level.update({"words": 1}, float(second), is_between=False)
    assert calls.log == []
    assert level.is_releasing


def test_without_a_host_nothing_is_requested():
    level = ExecutorLevel(lambda: 2, (1, 4), why_not="local")
    level.begin(0.0)
    assert level.resize({"words": 4}, 1.0) == []
    level.update({"words": 4}, 11.0, is_between=True)
    assert (level.alive, level.requested, level.executor_s) == (2, 2, 22.0)


def test_the_bounds_hold_whatever_is_needed():
    calls = FakeCalls()
    level = make_level(calls)
    level.resize({"words": 9}, 1.0)
    assert calls.total == 4


@pytest.mark.parametrize(
    ("total", "weights", "shares"),
    [
        pytest.param(4, {"a": 1}, {"a": 4}, id="one query has all"),
        pytest.param(4, {"a": 1, "b": 1}, {"a": 2, "b": 2}, id="even"),
        pytest.param(5, {"a": 2, "b": 1, "c": 1}, {"a": 3, "b": 1, "c": 1}, id="the rest to a"),
        pytest.param(
            2, {"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}, id="more than there are"
        ),
        pytest.param(3, {"a": 0, "b": 0}, {"a": 2, "b": 1}, id="no weights"),
        pytest.param(3, {}, {}, id="no query"),
    ],
)
def test_executors_are_split_by_weight(total, weights, shares):
    assert split_executors(total, weights) == shares


def test_small_queries_share_an_executor():
    assert count_executors({"a": 1, "b": 1}, {"a": 0.1, "b": 0.2}) == (1, 1)
    assert count_executors({"a": 1, "b": 1}, {"a": 0.6, "b": 0.6}) == (2, 2)
    assert count_executors({"a": 1}, {}) == (1, 1)


def test_a_query_that_was_not_measured_yet_changes_nothing():
    calls = FakeCalls(2)
    level = make_level(calls)
    settle(level, {"a": 1, "b": 1}, 0, 30)
    assert calls.log == []
    level.note_busy({"a": 0.1, "b": None})
    settle(level, {"a": 1, "b": 1}, 30, 60)
    assert calls.log == []
    level.note_busy({"a": None, "b": 0.2})
    settle(level, {"a": 1, "b": 1}, 60, 90)
    assert calls.log[0] == "total 1"


def test_an_executor_is_idle_if_its_tasks_do_not_change_over_some_batches():
    idle = IdleExecutors()
    for batch in range(BATCHES + 1):
        assert idle.find() == ()
        idle.update({"0": 10 * batch, "1": 3 * batch, "2": 0}, has_batch=True)
    assert idle.find() == ("2",)
    idle.update({"0": 99, "1": 99, "2": 1}, has_batch=True)
    assert idle.find() == ()
