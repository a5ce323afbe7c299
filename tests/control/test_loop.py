"""The MAPE loop against an engine that says what it is told to say."""

from tests.fakes import ONE_MORE, FakeEngine

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.core.guards import Guards


def run(engine: FakeEngine, *, guards: Guards | None = None, **schedule: float) -> list[Tick]:
    times = {"duration_s": 60.0, "interval_s": 15.0} | schedule
    return list(run_loop(engine, Decider(ONE_MORE, guards=guards), LoopSchedule(**times)))


def test_there_is_one_tick_an_interval_and_a_shorter_one_at_the_end() -> None:
    engine = FakeEngine()
    assert [tick.at for tick in run(engine, duration_s=40.0)] == [15, 30, 40]
    assert engine.now_s == 40


def test_a_change_is_carried_out_and_named_alone_in_the_plan() -> None:
    engine = FakeEngine()
    ticks = run(engine)
    assert [dict(plan.replicas) for plan in engine.plans] == [{"map": k} for k in (2, 3, 4, 5)]
    assert all(tick.applied and not tick.error for tick in ticks)
    assert ticks[0].decision.changes == {"map": 2}
    assert ticks[1].snapshot.operators["map"].parallelism == 2


def test_while_the_engine_has_nothing_to_show_nothing_is_decided() -> None:
    first, second, *_ = run(FakeEngine(not_ready={15.0}))
    assert (first.snapshot, first.decision, first.applied) == (None, None, False)
    assert first.error == "still starting" and first.status.at == 15
    assert second.applied and not second.error


def test_a_refused_change_is_told_and_the_loop_goes_on() -> None:
    engine = FakeEngine(refuses={15.0})
    first, second, *_ = run(engine)
    assert not first.applied and first.error == "no machine is free"
    assert first.decision.changes == {"map": 2} and first.status.running == {"map": 1}
    assert second.applied and second.decision.changes == {"map": 2}


def test_a_refused_change_starts_no_cool_down() -> None:
    ticks = run(FakeEngine(refuses={15.0}), guards=Guards(cooldown_s=30.0))
    assert [tick.applied for tick in ticks] == [False, True, False, True]


def test_a_loop_that_sleeps_after_a_change_asks_nobody_meanwhile() -> None:
    engine = FakeEngine()
    ticks = run(engine, duration_s=120.0, sleep_s=45.0)
    assert engine.observed == [15, 60, 105]
    assert [tick.at for tick in ticks if tick.applied] == [15, 60, 105]
    asleep = [tick for tick in ticks if tick.decision is None]
    assert all(tick.snapshot is None and not tick.error for tick in asleep)
    assert [tick.status.at for tick in asleep] == [30, 45, 75, 90, 120]


def test_a_loop_does_not_sleep_after_a_refused_change() -> None:
    engine = FakeEngine(refuses={15.0})
    run(engine, sleep_s=45.0)
    assert engine.observed == [15, 30]
