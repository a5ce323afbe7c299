"""Ticks of an engine that takes its time: late ones, the end, and who may end it."""

import math
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.control.rig import SlowEngine, TurnedClock, policy_of, wants

from penstock.control.clock import missed_between, next_due, run_clock
from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.core.snapshot import Snapshot
from penstock.engines.events import LateTickEvent

NOTHING = wants()


def run(
    engine: SlowEngine,
    answer: Callable[[Snapshot], Any] = NOTHING,
    duration_s: float = 90.0,
    start_s: float = 0.0,
    **options: Any,
) -> list[Tick]:
    schedule = LoopSchedule(duration_s=duration_s, interval_s=15.0, start_s=start_s)
    decider = Decider(policy_of(answer))
    return list(run_loop(engine, decider, schedule, clock=engine.clock, **options))


def late(ticks: list[Tick]) -> dict[float, int]:
    found = [
        event for tick in ticks for event in tick.status.events if isinstance(event, LateTickEvent)
    ]
    return {event.at: event.missed_ticks for event in found}


SET_BACK = """
import time
wall, shift_s = time.time, 0.0
time.time = lambda: wall() + shift_s
from penstock.control.clock import run_clock
clock = run_clock(10.0)
shift_s = -3600.0
print(clock())
"""


def test_a_wall_clock_that_is_set_back_does_not_stop_the_clock_of_a_run() -> None:
    done = subprocess.run([sys.executable, "-c", SET_BACK], capture_output=True, check=True)
    assert 10 <= float(done.stdout) < 100


def test_a_clock_goes_on_where_the_run_was() -> None:
    source = TurnedClock(5000.0)
    clock = run_clock(120.0, source)
    assert clock() == 120
    source.now_s += 7.5
    assert clock() == 127.5


def test_ticks_are_at_multiples_of_the_interval_and_at_the_end() -> None:
    ticks = run(SlowEngine(), duration_s=40.0)
    assert [tick.at for tick in ticks] == [15, 30, 40] and not late(ticks)


def test_a_tick_that_comes_a_little_late_does_not_shift_the_next() -> None:
    ticks = run(SlowEngine(oversleeps={15.0: 0.2504, 30.0: 14.0}), duration_s=60.0)
    assert [tick.at for tick in ticks] == [15.25, 44, 45, 60] and not late(ticks)


def test_ticks_that_were_missed_are_not_made_up() -> None:
    ticks = run(SlowEngine(oversleeps={30.0: 40.0}))
    assert [tick.at for tick in ticks] == [15, 70, 75, 90]
    assert late(ticks) == {70: 2}


def test_a_policy_that_takes_long_makes_the_next_tick_late() -> None:
    engine = SlowEngine()

    def slow(now: Snapshot) -> Any:
        engine.clock.now_s += 20.0 if now.at == 15 else 0.0
        return wants()(now)

    ticks = run(engine, slow)
    assert [tick.at for tick in ticks] == [15, 45, 60, 75, 90]
    assert late(ticks) == {45: 1}


@given(
    sleeps=st.dictionaries(st.integers(1, 20), st.floats(0, 100), max_size=5),
    interval_s=st.sampled_from([0.1, 0.7, 1.0, 7.3, 15.0]),
)
def test_whatever_is_late_no_multiple_has_two_ticks_and_none_is_forgotten(
    sleeps: dict[int, float], interval_s: float
) -> None:
    engine = SlowEngine(oversleeps={n * interval_s: s for n, s in sleeps.items()})
    schedule = LoopSchedule(duration_s=20 * interval_s, interval_s=interval_s)
    decider = Decider(policy_of(wants()))
    ticks = list(run_loop(engine, decider, schedule, clock=engine.clock))
    assert all(before.at < after.at for before, after in pairwise(ticks))
    numbers = [round(tick.at / interval_s, 6) // 1 for tick in ticks]
    assert len(set(numbers)) == len(numbers)
    assert ticks[-1].at >= schedule.duration_s - 1e-6
    assert len(ticks) + sum(late(ticks).values()) == numbers[-1]


@given(number=st.integers(1, 100_000), interval_s=st.floats(0.01, 100))
@example(number=15_743, interval_s=81.354)  # whose product divided by the second is less
def test_behind_one_multiple_comes_the_next(number: int, interval_s: float) -> None:
    due = next_due(number * interval_s, interval_s)
    assert due == pytest.approx((number + 1) * interval_s, rel=1e-12)


@given(at=st.floats(0, 1e6), interval_s=st.floats(0.01, 1e4))
def test_the_next_tick_is_ahead_and_not_far(at: float, interval_s: float) -> None:
    due = next_due(at, interval_s)
    assert at < due <= at + interval_s * (1 + 1e-6)
    assert missed_between(at, due, interval_s) == 0


def test_a_run_may_last_until_it_is_stopped() -> None:
    engine = SlowEngine()
    ticks = run(engine, duration_s=math.inf, stop=lambda: engine.clock.now_s >= 15 * 1000)
    assert len(ticks) == 1000 and ticks[-1].at == 15_000


def test_who_stops_between_two_ticks_gets_no_other() -> None:
    stopped: list[bool] = []
    engine = SlowEngine()
    schedule = LoopSchedule(duration_s=math.inf, interval_s=15.0)
    seen = []
    loop = run_loop(
        engine, Decider(policy_of(wants())), schedule, clock=engine.clock, stop=lambda: any(stopped)
    )
    for tick in loop:
        seen.append(tick.at)
        stopped.append(tick.at == 45)
    assert seen == [15, 30, 45]


def test_who_stops_while_time_passes_gets_a_last_tick_that_decides_nothing() -> None:
    class Stopped(SlowEngine):
        def advance(self, seconds: float) -> None:
            super().advance(4.0 if self.clock.now_s >= 30 else seconds)

    engine = Stopped()
    ticks = run(engine, wants(work=3), stop=lambda: engine.clock.now_s > 30)
    assert [tick.at for tick in ticks] == [15, 30, 34]
    assert ticks[-1].snapshot is None and ticks[-1].decision is None and not ticks[-1].error
    assert ticks[-1].status.at == 34


def test_who_stops_at_once_gets_nothing() -> None:
    class Idle(SlowEngine):
        def advance(self, seconds: float) -> None:
            self.asked_s = seconds

    engine = Idle()
    assert run(engine, stop=lambda: True) == []
    assert run(engine, stop=lambda: hasattr(engine, "asked_s")) == []


def test_a_resumed_run_goes_on_at_the_next_multiple() -> None:
    ticks = run(SlowEngine(TurnedClock(52.3)), start_s=52.3)
    assert [tick.at for tick in ticks] == [60, 75, 90] and not late(ticks)
    assert run(SlowEngine(TurnedClock(90.0)), start_s=90.0) == []


def test_a_simulator_has_the_same_schedule_without_a_clock() -> None:
    schedule = LoopSchedule(duration_s=40.0, interval_s=15.0)
    ticks = run_loop(SlowEngine(), Decider(policy_of(wants())), schedule)
    assert [tick.at for tick in ticks] == [15, 30, 40]
