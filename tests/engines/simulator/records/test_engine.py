"""The record-level simulator behind the engine port shows what is true."""

import numpy as np
import pytest

from penstock.engines.events import DroppedEvent, RestartEvent, RunningEvent
from penstock.engines.port import Engine, Plan
from penstock.engines.simulator.records.engine import RecordEngine
from penstock.engines.simulator.records.model import RecordOperator, RecordPipeline, RecordRules
from penstock.engines.simulator.records.service import ServiceTime
from penstock.engines.simulator.records.simulation import RecordSimulator
from penstock.errors import InputError, NotReadyError, RescaleError


def engine(queue_size: int | None = None, restart_s: float | None = None) -> Engine:
    """20 records/s into a map that sends 40 % to a sink; both are far from busy."""
    rng = np.random.default_rng(11)
    work = ServiceTime(distribution="gamma", mean_s=0.1, scv=0.5)
    operators = (
        RecordOperator(
            name="map",
            service=work,
            replicas=4,
            max_replicas=6,
            queue_size=queue_size,
            sent={"sink": 0.4},
        ),
        RecordOperator(name="sink", upstream=("map",), service=work.but(mean_s=0.05)),
    )
    pipeline = RecordPipeline(operators=operators, rules=RecordRules(restart_s=restart_s))
    times = np.cumsum(rng.exponential(1 / 20, 8000))
    return RecordEngine(RecordSimulator(pipeline, {"map": times}, seed=2))


def test_a_snapshot_measures_the_interval_since_the_last_one() -> None:
    running = engine()
    running.advance(100)
    running.observe()
    running.advance(200)
    snapshot = running.observe()
    seen = snapshot.operators["map"]
    assert snapshot.at == 300
    assert snapshot.offered["map"] == pytest.approx(20, rel=0.05)
    assert seen.input_rate == pytest.approx(20, rel=0.05)
    assert seen.sent == {"sink": seen.output_rate}
    assert seen.selectivity == pytest.approx(0.4, rel=0.05)
    assert seen.service_time_s == pytest.approx(0.1, rel=0.05)
    assert seen.service_scv == pytest.approx(0.5, rel=0.1)
    assert seen.arrival_scv == pytest.approx(1.0, rel=0.1)
    assert seen.busy == pytest.approx(0.5, rel=0.05)
    assert seen.true_rate == pytest.approx(10, rel=0.05)
    assert seen.idle == pytest.approx(1 - 0.5, rel=0.05)
    assert (seen.cpu, seen.backpressured, seen.input_buffer) == (seen.busy, 0, None)
    assert (seen.parallelism, seen.requested, seen.max_parallelism) == (4, 4, 6)
    assert snapshot.arrival_rate("sink") == pytest.approx(8, rel=0.05)
    assert snapshot.operators["sink"].output_rate == pytest.approx(8, rel=0.05)


def test_before_any_time_has_passed_there_is_nothing_to_show() -> None:
    running = engine()
    with pytest.raises(NotReadyError):
        running.observe()
    running.advance(1)
    assert running.observe() is running.observe()


def test_the_queue_its_growth_and_its_buffer_are_shown() -> None:
    running = engine(queue_size=200)
    running.apply(Plan(replicas={"map": 1}))
    running.advance(10)
    before = running.observe().operators["map"]
    running.advance(5)
    now = running.observe().operators["map"]
    assert before.queue is not None
    assert now.queue is not None
    assert now.queue_growth == (now.queue - before.queue) / 5
    # 20 records/s come, 10 can be served
    assert now.queue_growth == pytest.approx(10, rel=0.4)
    assert now.input_buffer == now.queue / 200
    assert now.busy == pytest.approx(1.0)


def test_status_counts_every_record_and_tells_events_once() -> None:
    running = engine(queue_size=5)
    running.advance(10)
    running.apply(Plan(replicas={"map": 1}))
    running.advance(20)
    status = running.status()
    assert status.offered_records == (
        status.processed_records + status.dropped_records + status.backlog_records
    )
    assert status.dropped_records > 0
    assert status.running == {"map": 1, "sink": 1}
    assert len(status.events) == 2
    assert status.events[0] == RunningEvent(at=10, operator="map", replicas=1)
    dropped = status.events[1]
    assert isinstance(dropped, DroppedEvent)
    assert dropped.causes == {"queue-full": status.dropped_records}
    assert list(status.latency) == ["map > sink"]
    again = running.status()
    assert (again.events, again.latency) == ((), {})


def test_a_restart_shows_nothing_and_refuses_plans_until_it_is_over() -> None:
    running = engine(restart_s=10)
    assert running.capabilities.pauses == {"map", "sink"}
    running.advance(5)
    running.apply(Plan(replicas={"map": 5, "sink": 2}))
    running.advance(5)
    with pytest.raises(NotReadyError, match="restarts until 15 s"):
        running.observe()
    with pytest.raises(RescaleError):
        running.apply(Plan(replicas={"map": 6}))
    running.advance(5)
    assert running.observe().operators["map"].parallelism == 5
    status = running.status()
    restart, *others = status.events[:3]
    assert [type(event) for event in others] == [RunningEvent, RunningEvent]
    assert isinstance(restart, RestartEvent)
    assert status.dropped_records == restart.dropped_records > 0


def test_a_plan_beyond_what_the_engine_can_do_is_refused() -> None:
    running = engine()
    with pytest.raises(InputError, match="from 1 to 6, got 7"):
        running.apply(Plan(replicas={"map": 7}))
    with pytest.raises(InputError, match="no executors"):
        running.apply(Plan(executors=2))
