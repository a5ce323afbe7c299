"""The engine of restarts: a replica is a partition, what failed is not requested again."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.engines.attached.fakes import FakeApplication, FakeQuery
from tests.engines.attached.reports import BEGAN
from tests.engines.attached.restart.fake_host import FakeHost

from penstock.engines.attached.engine import AttachedTiming
from penstock.engines.attached.executor_level import ExecutorLevel
from penstock.engines.attached.restart.elastic_application import ElasticApplication
from penstock.engines.attached.restart.elastic_query import ElasticQuery
from penstock.engines.attached.restart.query_restarter import QueryRestarter
from penstock.engines.attached.restart.restart_engine import RestartEngine
from penstock.engines.attached.restart.restart_level import ElasticMember, RestartLevel
from penstock.engines.attached.restart.restart_log import RestartLog
from penstock.engines.events import FailedEvent, RunningEvent
from penstock.engines.port import Plan
from penstock.engines.query_events import PartitionsChangedEvent, QueryEndedEvent
from penstock.errors import RescaleError


class FakeRun:
    """A run of a query that a factory has started."""

    def __init__(self, query: FakeQuery) -> None:
        self.query, self.isActive = query, True

    def stop(self) -> None:
        self.isActive = self.query.active = False


class StartingHost(FakeHost):
    """Starts runs of a query that reads 1000 rows every 5 s."""

    def __init__(self, bench: "Bench", partitions: int) -> None:
        super().__init__(partitions, has_state=False)
        self._bench = bench

    def start(self, partitions: int) -> int:
        shuffle = super().start(partitions)
        self._bench.start_run(partitions)
        return shuffle

    def stop(self) -> None:
        super().stop()
        self._bench.elastic.query.stop()  # type: ignore[union-attr]


class Bench:
    """An engine with one query, and a clock that only `run` moves."""

    def __init__(self, home: Path, initial: int = 2, *, acts: bool = True) -> None:
        self.second, self.batches = 0.0, 0
        self.elastic = ElasticQuery(
            lambda _spark, _k: None,  # type: ignore[arg-type, return-value]
            bounds=(1, 6),
            initial=initial,
            deadline_s=5.0,
        )
        self.start_run(initial)
        self.host, self.refusal = StartingHost(self, initial), ""
        log = RestartLog(home)
        restarter = QueryRestarter("words", self.host, log, {initial: initial}, self.clock)
        member = ElasticMember(
            elastic=self.elastic, restarter=restarter, explain_refusal=lambda: self.refusal
        )
        self.level = RestartLevel({"words": member})
        runs = {"words": self.elastic}
        follow: Callable[[Any, str], Any] = lambda run, _name: run.query  # noqa: E731
        base = FakeApplication()
        base.cores = 4
        self.engine = RestartEngine(
            ElasticApplication(base, runs, follow),
            ExecutorLevel(lambda: 1, (1, 1)),
            self.level,
            timing=AttachedTiming(freshness_s=20.0),
            clock=self.clock,
            acts=acts,
        )

    def clock(self) -> float:
        return BEGAN + self.second

    def start_run(self, partitions: int) -> None:
        query = FakeQuery()
        query._next_s = self.second
        self.elastic._note_start(FakeRun(query), partitions)

    def run(self, seconds: float) -> None:
        for _ in range(math.ceil(seconds)):
            self.second += 1.0
            run: Any = self.elastic.query
            run.query.report_until(self.second)
            self.engine.update()
            for thread in list(self.level._threads.values()):
                thread.join(5.0)


def test_partitions_are_replicas_and_change_by_a_restart(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.run(30)
    words = bench.engine.observe().operators["words"]
    assert (words.parallelism, words.max_parallelism, words.useful_parallelism) == (2, 6, 4)
    assert words.busy == pytest.approx(0.85, abs=0.1)
    bench.engine.status()
    bench.engine.apply(Plan(replicas={"words": 4}))
    bench.level.finish(5.0)
    assert bench.elastic.partitions == 4
    bench.run(30)
    status = bench.engine.status()
    kinds = [type(event) for event in status.events]
    assert PartitionsChangedEvent in kinds
    assert RunningEvent in kinds
    assert QueryEndedEvent not in kinds
    assert dict(status.running) == {"words": 4}
    assert bench.engine.observe().operators["words"].parallelism == 4
    assert '"changed"' in (tmp_path / "restarts.jsonl").read_text().splitlines()[-1]


def test_a_number_that_failed_is_not_requested_again(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.run(30)
    bench.host.refused.add(4)
    bench.engine.apply(Plan(replicas={"words": 4}))
    bench.level.finish(5.0)
    bench.run(20)
    assert bench.elastic.partitions == 2
    status = bench.engine.status()
    assert (status.requested["words"], status.running["words"]) == (2, 2)
    assert bench.engine.observe().operators["words"].max_parallelism == 3
    with pytest.raises(RescaleError):
        bench.engine.apply(Plan(replicas={"words": 4}))


def test_a_query_that_cannot_be_changed_says_why(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.run(10)
    bench.refusal = "its state is in HDFSBackedStateStoreProvider"
    with pytest.raises(RescaleError, match="HDFSBacked"):
        bench.engine.apply(Plan(replicas={"words": 4}))
    bench = Bench(tmp_path, acts=False)
    with pytest.raises(RescaleError):
        bench.engine.apply(Plan(replicas={"words": 4}))


def test_the_run_is_over_when_the_query_was_stopped_for_good(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.run(10)
    bench.elastic.stop()
    bench.run(2)
    assert bench.engine.status().is_over


def test_a_query_that_runs_with_neither_number_ends_the_run(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.run(10)
    bench.host.refused |= {2, 4}
    bench.engine.apply(Plan(replicas={"words": 4}))
    bench.level.finish(5.0)
    bench.run(2)
    status = bench.engine.status()
    assert status.is_over
    assert any(isinstance(event, FailedEvent) for event in status.events)


def test_a_change_at_a_time(tmp_path: Path):
    bench = Bench(tmp_path)
    bench.run(10)
    bench.level._threads["words"] = None  # type: ignore[assignment]
    with pytest.raises(RescaleError, match="being started"):
        bench.engine.apply(Plan(replicas={"words": 4}))
    del bench.level._threads["words"]
