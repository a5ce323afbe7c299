"""The engine follows queries, asks for executors, and never touches a query."""

import math

import pytest
from tests.engines.attached.fakes import FakeApplication, FakeCalls, FakeQuery
from tests.engines.attached.reports import BEGAN

from penstock.control.loop import Tick
from penstock.engines.attached.engine import AttachedEngine, AttachedTiming
from penstock.engines.attached.executor_level import ExecutorLevel
from penstock.engines.attached.foreign_executors import ForeignExecutors
from penstock.engines.attached.task_facts import StageFacts, TaskFacts
from penstock.engines.events import Event, FailedEvent, RunningEvent
from penstock.engines.port import Plan
from penstock.engines.query_events import (
    ExecutorEffectEvent,
    QueryEndedEvent,
    QueryStartedEvent,
    VerdictEvent,
)
from penstock.errors import InputError, NotReadyError, RescaleError
from penstock.runs.scores import score


class Bench:
    """An engine on a fake application, with a clock that only `run` moves."""

    def __init__(
        self, *queries: FakeQuery, calls: FakeCalls | None = None, ends_with_queries: bool = False
    ) -> None:
        self.second = 0.0
        self.queries, self.calls = queries, calls
        self.application = FakeApplication(*queries)
        host = ForeignExecutors(calls, exits_alone=False) if calls is not None else None
        self.level = ExecutorLevel(self._count, (1, 4), host=host, why_not="local: advises only")
        self.engine = AttachedEngine(
            self.application,
            self.level,
            timing=AttachedTiming(freshness_s=20.0),
            clock=lambda: BEGAN + self.second,
            ends_with_queries=ends_with_queries,
        )

    def _count(self) -> int:
        return sum(self.calls.alive().values()) if self.calls is not None else 2

    def run(self, seconds: float) -> None:
        """Let time pass; look every second."""
        for _ in range(math.ceil(seconds)):
            self.second += 1.0
            for query in self.application.queries:
                query.report_until(self.second)
            self.engine.update()

    def take_events(self, kind: type) -> list[Event]:
        return [event for event in self.engine.status().events if isinstance(event, kind)]


def test_each_query_is_an_operator_with_the_executors_as_parallelism():
    bench = Bench(FakeQuery())
    bench.run(70)
    snapshot = bench.engine.observe()
    words = snapshot.operators["words"]
    assert (words.parallelism, words.max_parallelism) == (2, 4)
    assert snapshot.offered["words"] == pytest.approx(200.0)
    assert words.input_rate == pytest.approx(200.0, rel=0.05)
    assert words.busy == pytest.approx(0.8, abs=0.07)
    status = bench.engine.status()
    assert (status.executors, status.executors_requested) == (2, 2)
    assert status.executor_s == pytest.approx(140.0)
    assert status.processed_records == 14_000
    assert len(status.batches["words"]) == 14
    assert status.latency["words"].count > 0
    assert status.ingests["words"].unit == "offsets"


def test_batches_before_the_run_are_measured_but_not_counted():
    query = FakeQuery()
    query.report_until(60.0)
    bench = Bench(query)
    bench.second = 60.0
    bench.run(1)
    assert bench.engine.observe().operators["words"].input_rate == pytest.approx(200.0, rel=0.05)
    status = bench.engine.status()
    assert (status.processed_records, status.batches, status.ingests["words"].rows) == (0, {}, 0)
    bench.run(10)
    assert bench.engine.status().processed_records == 2000


def test_before_the_first_batch_nothing_is_known():
    bench = Bench(FakeQuery())
    with pytest.raises(NotReadyError, match="no query is active"):
        bench.engine.observe()
    bench.run(2)
    with pytest.raises(NotReadyError, match="no batch has ended"):
        bench.engine.observe()


def test_a_query_is_announced_with_how_its_backlog_is_known():
    bench = Bench(FakeQuery())
    bench.run(10)
    (event,) = bench.take_events(QueryStartedEvent)
    assert isinstance(event, QueryStartedEvent)
    assert (event.operator, event.query_id, event.backlog) == ("words", "id-words", "offsets")


def test_a_later_query_is_followed_too_and_one_that_ended_is_not():
    words, clicks = FakeQuery("words"), FakeQuery("clicks")
    bench = Bench(words)
    bench.run(10)
    bench.application.queries.append(clicks)
    bench.run(20)
    assert set(bench.engine.observe().operators) == {"words", "clicks"}
    words.active, words.error = False, "boom"
    before = bench.engine.status().processed_records
    bench.run(1)
    assert set(bench.engine.observe().operators) == {"clicks"}
    status = bench.engine.status()
    (ended,) = [event for event in status.events if isinstance(event, QueryEndedEvent)]
    assert (ended.operator, ended.error) == ("words", "boom")
    assert status.processed_records >= before  # what it has read stays in the sums
    assert "words" in status.replica_s
    assert not status.is_over


def test_a_run_on_given_queries_is_over_when_they_have_ended():
    query = FakeQuery()
    bench = Bench(query, ends_with_queries=True)
    bench.run(10)
    assert not bench.engine.status().is_over
    query.active = False
    bench.run(1)
    assert bench.engine.status().is_over


def test_a_query_that_ends_before_the_first_tick_is_no_part_of_the_run():
    query = FakeQuery()
    bench = Bench(query, ends_with_queries=True)
    bench.run(2)
    query.active = False
    bench.run(1)
    status = bench.engine.status()
    assert (status.replica_s, status.is_over) == ({}, True)
    assert score([Tick(at=3.0, status=status)]).operators == {}


def test_it_is_over_when_spark_is_stopped():
    bench = Bench(FakeQuery())
    bench.run(5)
    bench.application.alive = False
    bench.run(1)
    assert bench.engine.status().is_over


def test_an_error_of_spark_is_reported_and_the_next_look_goes_on():
    bench = Bench(FakeQuery())
    bench.run(10)
    bench.application.broken = RuntimeError("Py4J: connection lost\nat Foo.java")
    bench.engine._look()
    (failed,) = bench.take_events(FailedEvent)
    assert isinstance(failed, FailedEvent)
    assert failed.error == "cannot look at Spark: Py4J: connection lost"
    bench.application.broken = None
    bench.run(10)
    assert bench.engine.observe().operators


# --- acting


def test_without_executors_a_plan_is_refused_with_the_reason():
    bench = Bench(FakeQuery())
    bench.run(10)
    assert not bench.engine.capabilities.has_executors
    with pytest.raises(RescaleError, match="local: advises only"):
        bench.engine.apply(Plan(replicas={"words": 3}))


def test_a_plan_becomes_executors_and_runs_when_they_are_there():
    calls = FakeCalls()
    query = FakeQuery(work_s=4.5)
    bench = Bench(query, calls=calls)
    bench.run(20)
    bench.engine.apply(Plan(replicas={"words": 3}))
    assert calls.total == 3
    bench.run(10)
    assert bench.engine.status().running == {"words": 1}
    calls.start_missing()
    query.work_s = 1.5
    bench.run(10)
    status = bench.engine.status()
    assert status.running == {"words": 3}
    assert any(isinstance(event, RunningEvent) for event in status.events)
    assert bench.engine.observe().operators["words"].busy is None  # not judged yet
    bench.run(60)
    assert bench.engine.observe().operators["words"].busy == pytest.approx(0.33, abs=0.08)
    (effect,) = bench.take_events(ExecutorEffectEvent)
    assert isinstance(effect, ExecutorEffectEvent)
    assert effect.speed == pytest.approx(3 * effect.speed_before, rel=0.01)


def test_a_lower_plan_waits_for_the_end_of_a_batch():
    calls = FakeCalls(3)
    query = FakeQuery()
    bench = Bench(query, calls=calls)
    query.working = True
    bench.run(20)
    bench.engine.apply(Plan(replicas={"words": 1}))
    assert calls.log == []
    bench.run(40)  # batches end every five seconds
    assert calls.log[:2] == ["total 1", "decommission 1"]
    assert list(calls.staying) == ["0"]
    assert bench.engine.status().running == {"words": 1}


def test_two_queries_share_executors_and_the_journal_names_who_needs_them():
    calls = FakeCalls(2)
    bench = Bench(FakeQuery("words"), FakeQuery("clicks", work_s=0.5), calls=calls)
    bench.run(40)
    assert bench.engine.status().running == {"words": 1, "clicks": 1}
    bench.engine.observe()
    bench.engine.apply(Plan(replicas={"words": 3}))
    assert calls.total == 4  # three, and a part of one for clicks
    (event,) = [e for e in bench.engine.status().events if getattr(e, "needs", None)]
    assert event.needs == "words 3, clicks 1"  # type: ignore[union-attr]
    calls.start_missing()
    bench.run(12)
    assert bench.engine.status().running == {"words": 3, "clicks": 1}


def test_a_plan_for_an_unknown_query_or_too_many_executors_is_an_error():
    bench = Bench(FakeQuery(), calls=FakeCalls())
    bench.run(10)
    for replicas in ({"wrods": 2}, {"words": 9}):
        with pytest.raises(InputError):
            bench.engine.apply(Plan(replicas=replicas))


def test_leaving_ends_executors_that_were_sent_home():
    calls = FakeCalls(2)
    bench = Bench(FakeQuery(), calls=calls)
    bench.run(20)
    calls.tasks["1"] = 1
    bench.engine.apply(Plan(replicas={"words": 1}))
    bench.run(40)
    assert bench.level.has_leaving
    calls.tasks["1"] = 0
    bench.engine.leave()
    assert list(calls.staying) == ["0"]


# --- verdicts


def test_a_query_that_keeps_up_has_no_source_limit():
    bench = Bench(FakeQuery(rows=40, work_s=0.2, every_s=2.0))
    bench.run(60)  # rows of the next batch have arrived, but none waited when it was planned
    assert bench.take_events(VerdictEvent) == []


def test_a_read_limit_is_noticed():
    class Limited(FakeQuery):
        def report_until(self, second):
            self.backlog = 400 + round(20 * second)
            super().report_until(second)

    bench = Bench(Limited(rows=40, work_s=0.2, every_s=2.0))
    bench.run(60)
    (event,) = bench.take_events(VerdictEvent)
    assert isinstance(event, VerdictEvent)
    assert event.culprit == "source-limit"


def test_a_verdict_needs_several_batches_in_a_row():
    few = TaskFacts(stages=(StageFacts(tasks=2, run_s=22.0, longest_s=11.5, median_s=11.0),))
    query = FakeQuery(work_s=12.0, every_s=12.5, backlog=5000, facts=few)
    bench = Bench(query)
    bench.run(80)  # six batches: the fifth and the sixth agree
    assert bench.take_events(VerdictEvent) == []
    bench.run(13)
    assert len(bench.take_events(VerdictEvent)) == 1


def test_a_verdict_is_reported_once_and_limits_the_executors():
    few = TaskFacts(stages=(StageFacts(tasks=2, run_s=22.0, longest_s=11.5, median_s=11.0),))
    bench = Bench(FakeQuery(work_s=12.0, every_s=12.5, backlog=5000, facts=few))
    bench.run(120)
    words = bench.engine.observe().operators["words"]
    assert words.useful_parallelism == 2
    assert words.extra["verdicts"] == ("few-partitions",)
    (event,) = bench.take_events(VerdictEvent)
    assert isinstance(event, VerdictEvent)
    assert (event.operator, event.culprit) == ("words", "few-partitions")
    bench.run(60)
    assert bench.take_events(VerdictEvent) == []


def test_idle_executors_of_a_query_with_state_are_noticed():
    class Stateful(FakeQuery):
        def read_new(self):
            reports = super().read_new()
            for report in reports:
                report.progress["stateOperators"].append({"numRowsTotal": 5, "commitTimeMs": 1})  # type: ignore[index]
            return reports

    bench = Bench(Stateful(work_s=11.0, every_s=11.5, backlog=9000))
    for second in range(200):
        bench.application.tasks = {"0": second, "1": second, "2": 7}
        bench.run(1)
    (event,) = bench.take_events(VerdictEvent)
    assert isinstance(event, VerdictEvent)
    assert event.culprit == "locality-wait"
