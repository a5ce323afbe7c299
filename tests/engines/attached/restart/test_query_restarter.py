"""A change of partitions ends with the new number, or with the previous one, or says why not."""

import pytest
from tests.engines.attached.restart.fake_host import FakeHost, FakeLog

from penstock.engines.attached.restart.query_restarter import QueryRestarter, StateFacts
from penstock.engines.events import FailedEvent, StepEvent
from penstock.engines.query_events import (
    PartitionsChangedEvent,
    PartitionsRequestedEvent,
    PartitionsRestoredEvent,
)
from penstock.errors import RescaleError


def make_restarter(host: FakeHost, log: FakeLog | None = None) -> QueryRestarter:
    first = {} if host.running is None else {host.running: host.running * host.factor}
    return QueryRestarter("words", host, log or FakeLog(), first)


def test_a_query_without_state_is_stopped_and_started():
    host, log = FakeHost(has_state=False), FakeLog()
    restarter = make_restarter(host, log)
    assert restarter.change(2, 4) == 4
    assert host.log == ["stop", "start 4"]
    assert log.lines == [
        f"words 2->4 {step}" for step in ("requested", "wait", "restart", "verify", "changed")
    ]
    first, *steps, last = restarter.events
    assert isinstance(first, PartitionsRequestedEvent)
    assert [step.step for step in steps if isinstance(step, StepEvent)] == [
        "wait",
        "restart",
        "verify",
    ]
    assert isinstance(last, PartitionsChangedEvent)
    assert (last.before, last.partitions, last.state_rows) == (2, 4, None)
    assert last.repartition_s is None


def test_state_is_repartitioned_while_the_query_does_not_run():
    host = FakeHost()
    restarter = make_restarter(host)
    assert restarter.change(2, 3) == 3
    assert host.log == ["stop", "repartition 3", "start 3"]
    assert host.state == StateFacts(3, True)
    changed = restarter.events[-1]
    assert isinstance(changed, PartitionsChangedEvent)
    assert changed.state_rows == 50
    assert changed.repartition_s is not None


def test_a_batch_that_did_not_end_runs_with_its_own_number_first():
    host = FakeHost()
    host.stops_late = True
    assert make_restarter(host).change(2, 3) == 3
    assert host.log == ["stop", "start 3", "stop", "repartition 3", "start 3"]


def test_state_follows_the_number_that_the_factory_sets():
    host = FakeHost(2)
    host.factor, host.state = 2, StateFacts(4, True)
    restarter = make_restarter(host)
    assert restarter.change(2, 3) == 3
    assert host.state == StateFacts(6, True)
    assert host.log[-3:] == ["stop", "repartition 6", "start 3"]
    host.log.clear()
    assert restarter.change(3, 2) == 2
    assert host.log == ["stop", "repartition 4", "start 2"]  # known by now


@pytest.mark.parametrize("broken", ["refused", "silent"])
@pytest.mark.parametrize("has_state", [False, True])
def test_the_previous_number_is_restored(broken, has_state):
    host, log = FakeHost(has_state=has_state), FakeLog()
    getattr(host, broken).add(4)
    restarter = make_restarter(host, log)
    assert restarter.change(2, 4) == 2
    assert host.running == 2
    assert host.state == (StateFacts(2, True) if has_state else None)
    restored = restarter.events[-1]
    assert isinstance(restored, PartitionsRestoredEvent)
    assert (restored.partitions, restored.wanted) == (2, 4)
    assert "\n" not in restored.error
    assert log.lines[-1] == "words 2->4 restored"


def test_a_repartition_that_was_interrupted_is_completed_before_the_previous_number():
    host = FakeHost()
    host.stuck.add(3)
    assert make_restarter(host).change(2, 3) == 2
    assert host.log == ["stop", *("repartition 3",) * 2, "repartition 2", "start 2"]


def test_a_query_that_runs_with_neither_number_says_why():
    host, log = FakeHost(), FakeLog()
    host.refused |= {2, 4}
    restarter = make_restarter(host, log)
    assert restarter.change(2, 4) == 0
    failed = restarter.events[-1]
    assert isinstance(failed, FailedEvent)
    assert "4 partitions (no 4 connections), nor with 2 again: no 2 connections" in failed.error
    assert log.lines[-1] == "words 2->4 failed"


def test_the_state_of_an_earlier_run_decides_at_the_first_start():
    host = FakeHost(1)
    host.state = StateFacts(3, True)
    restarter = make_restarter(host)
    assert restarter.adopt(1, (1, 8)) == 3
    assert host.log == ["stop", "start 3"]
    host = FakeHost(1)
    host.state = StateFacts(12, True)
    assert make_restarter(host).adopt(1, (1, 8)) == 8
    assert host.state == StateFacts(8, True)
    assert make_restarter(FakeHost(2)).adopt(2, (1, 8)) == 2


def test_a_repartition_that_a_crash_interrupted_is_completed_at_the_first_start():
    host = FakeHost(2)
    host.state, host.running = StateFacts(3, False, is_interrupted=True), None
    restarter = make_restarter(host)
    assert restarter.adopt(2, (1, 8)) == 3
    assert host.log == ["repartition 3", "start 3"]


def test_a_query_that_fails_at_the_first_start_is_left_alone():
    host = FakeHost(2)
    host.running = None
    with pytest.raises(RescaleError):
        make_restarter(host).adopt(2, (1, 8))
    assert host.log == []


def test_a_query_that_the_user_has_stopped_is_not_restored():
    host, log = FakeHost(), FakeLog()
    host.refused.add(3)
    host.stopped = True
    restarter = make_restarter(host, log)
    assert restarter.change(2, 3) == 0
    assert log.lines[-1] == "words 2->3 stopped"
    assert not any(isinstance(event, FailedEvent) for event in restarter.events)


def test_no_change_begins_once_the_application_is_left_alone():
    host = FakeHost(1)
    host.state = StateFacts(3, True)
    restarter = make_restarter(host)
    restarter.is_leaving = True
    assert restarter.adopt(1, (1, 8)) == 1
    assert host.log == []
