"""A loop that only observes: changes of replicas are recorded as applied, nothing is requested."""

from tests.control.rig import SlowEngine, policy_of, wants

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, run_loop


def test_changes_are_recorded_and_never_requested() -> None:
    engine = SlowEngine()
    decider = Decider(policy_of(wants(work=3)))
    schedule = LoopSchedule(duration_s=60.0, interval_s=15.0)
    ticks = list(run_loop(engine, decider, schedule, clock=engine.clock, observes_only=True))
    assert engine.asked == []
    assert [dict(tick.plan) for tick in ticks] == [{"work": 3}] * 4
    assert all(tick.applied and not tick.error for tick in ticks)


def test_a_tick_without_a_change_applies_nothing() -> None:
    engine = SlowEngine()
    decider = Decider(policy_of(wants(work=1)))
    schedule = LoopSchedule(duration_s=30.0, interval_s=15.0)
    ticks = list(run_loop(engine, decider, schedule, clock=engine.clock, observes_only=True))
    assert [(tick.applied, dict(tick.plan)) for tick in ticks] == [(False, {})] * 2
