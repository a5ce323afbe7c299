"""A change that fails is told, tried again with a back-off, and given up for a newer one."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.control.rig import SlowEngine, policy_of, wants

from penstock.control.decider import Decider
from penstock.control.execution import Patience
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.core.guards import Guards
from penstock.core.reasons import Reason
from penstock.core.snapshot import Snapshot
from penstock.engines.event_json import event_fields
from penstock.engines.events import HeldEvent, kind_of
from penstock.errors import RescaleError

PATIENCE = Patience(deadline_s=60.0, first_pause_s=15.0, longest_pause_s=120.0)


def run(
    answer: Callable[[Snapshot], Any],
    engine: SlowEngine,
    duration_s: float = 600.0,
    guards: Guards | None = None,
    **options: Any,
) -> list[Tick]:
    decider = Decider(policy_of(answer), guards=guards or Guards())
    schedule = LoopSchedule(duration_s=duration_s, interval_s=15.0)
    options = {"patience": PATIENCE, "clock": engine.clock} | options
    return list(run_loop(engine, decider, schedule, **options))


def full(until_s: float, error: Exception | None = None) -> Callable[[float], Exception | None]:
    return lambda at: (error or RescaleError("no machine is free")) if at < until_s else None


def events(ticks: list[Tick], *kinds: str) -> list[tuple[float, str, dict[str, Any]]]:
    found = [event for tick in ticks for event in tick.status.events if kind_of(event) in kinds]
    return [(event.at, event.operator, event_fields(event)) for event in found]


def changing(*steps: tuple[float, Callable[[Snapshot], Any]]) -> Callable[[Snapshot], Any]:
    """Answers as the last step that has begun."""

    def answer(now: Snapshot) -> Any:
        return [step for begins, step in steps if begins <= now.at][-1](now)

    return answer


def test_a_refused_change_is_tried_again_after_pauses_that_double_up_to_a_bound() -> None:
    engine = SlowEngine(refuses=full(430.0))
    ticks = run(wants(work=3), engine)
    # refused at 15: again 15 s later, then 30, 60, 120 and not 240
    assert [at for at, _ in engine.asked] == [15, 30, 60, 120, 240, 360, 480]
    assert engine.plans == [(480, {"work": 3})]
    assert ticks[0].error == "no machine is free"
    assert ticks[2].error == "work 3 is retried at 60 s" and not ticks[2].applied
    assert [tick.at for tick in ticks if tick.applied] == [480]
    assert events(ticks, "retried") == [
        (at, "work", {"replicas": 3, "tries": tries})
        for tries, at in enumerate([30, 60, 120, 240, 360, 480], start=2)
    ]


def test_a_tick_that_was_a_little_late_puts_off_no_retry() -> None:
    engine = SlowEngine(refuses=full(20.0), oversleeps={15.0: 0.02})
    run(wants(work=3), engine, 45.0)
    assert engine.plans == [(30, {"work": 3})]


def test_an_error_of_another_kind_is_tried_again_as_well_and_is_an_event() -> None:
    engine = SlowEngine(refuses=full(20.0, OSError("read-only")))
    ticks = run(wants(work=3), engine, 45.0)
    assert ticks[0].error == "OSError: read-only"
    assert events(ticks, "failed") == [(15, "", {"error": "OSError: read-only"})]
    assert engine.plans == [(30, {"work": 3})]


def test_a_change_that_does_not_take_effect_has_failed_and_is_asked_for_again() -> None:
    engine = SlowEngine(stalls=lambda at: at < 100.0)
    ticks = run(wants(work=3), engine, 150.0)
    assert engine.plans == [(15, {"work": 3}), (90, {"work": 3})]
    failure = {"error": "requested 3 replicas, 1 running"}
    assert events(ticks, "failed") == [(75, "work", failure)]
    assert events(ticks, "retried") == [(90, "work", {"replicas": 3, "tries": 2})]
    assert ticks[1].error == "work 3 is in progress" and ticks[1].decision is not None
    assert ticks[4].error == "work 3 is in progress"  # at 75 s its deadline is only just over
    assert [tick.error for tick in ticks if tick.status.running["work"] == 3] == ["", "", ""]


def test_what_comes_late_by_itself_is_not_asked_for_again() -> None:
    engine = SlowEngine(stalls=lambda at: at < 75.0)
    ticks = run(wants(work=3), engine, 200.0)
    assert len(events(ticks, "failed")) == 1 and events(ticks, "retried", "gave-up") == []
    assert engine.plans == [(15, {"work": 3})]


def test_a_newer_decision_about_the_same_operator_takes_the_place_of_a_failed_one() -> None:
    engine = SlowEngine(refuses=full(100.0))
    ticks = run(changing((0, wants(work=3)), (90, wants(work=5))), engine, 120.0)
    assert [ask for ask in engine.asked if ask[0] >= 60] == [
        (60, {"work": 3}), (90, {"work": 5}), (105, {"work": 5}),
    ]  # fmt: skip
    assert events(ticks, "gave-up") == [(90, "work", {"replicas": 3, "tries": 3, "wanted": 5})]


@pytest.mark.parametrize("later", [5, 2, 1])
def test_while_a_change_is_under_way_nothing_newer_is_asked_of_its_operator(later: int) -> None:
    engine = SlowEngine(stalls=lambda at: at < 40.0)
    ticks = run(changing((0, wants(work=3)), (30, wants(work=later))), engine, 60.0)
    assert engine.plans == [(15, {"work": 3}), (60, {"work": later})]
    if later != 1:  # which is what still runs, so that nothing would be asked for
        assert (ticks[1].applied, ticks[1].error) == (False, "work 3 is in progress")
    assert events(ticks, "failed", "retried", "gave-up") == []


@pytest.mark.parametrize(
    ("later", "tried"),
    [
        (wants(reason=Reason.FITS), False),  # sized, and to what runs
        (wants(reason=Reason.METRICS_MISSING), True),
        (wants(reason="our own word"), True),
        (lambda _now: 1 / 0, True),
        (wants(read=2, reason=Reason.METRICS_MISSING), True),
    ],
)
def test_a_policy_without_a_new_word_on_an_operator_leaves_it_to_be_tried_again(
    later: Callable[[Snapshot], Any], tried: bool
) -> None:
    engine = SlowEngine(refuses=full(20.0))
    ticks = run(changing((0, wants(work=3)), (16, later)), engine, 60.0)
    assert ((30, {"work": 3}) in engine.plans) == tried
    assert bool(events(ticks, "gave-up")) != tried
    assert all(not tick.plan or tick.plan == dict(merged(engine, tick.at)) for tick in ticks)


def merged(engine: SlowEngine, at: float) -> dict[str, int]:
    return {name: k for when, plan in engine.plans if when == at for name, k in plan.items()}


def test_a_guard_that_holds_is_no_new_word_either() -> None:
    engine = SlowEngine(stalls=lambda at: at < 100.0)
    ticks = run(wants(work=3), engine, 120.0, Guards(cooldown_s=1000.0))
    assert engine.plans == [(15, {"work": 3}), (90, {"work": 3})]
    retried = next(tick for tick in ticks if tick.at == 90)
    assert (retried.applied, dict(retried.plan)) == (False, {"work": 3})


def test_while_nothing_can_be_observed_failed_changes_are_tried_again() -> None:
    engine = SlowEngine(refuses=full(20.0), not_ready=[30.0])
    ticks = run(wants(work=3), engine, 30.0)
    assert engine.plans == [(30, {"work": 3})]
    assert ticks[1].error == "still starting" and ticks[1].plan == {"work": 3}


def test_a_retry_that_is_refused_says_so() -> None:
    engine = SlowEngine(refuses=full(40.0), not_ready=[30.0])
    ticks = run(wants(work=3), engine, 30.0)
    assert events(ticks, "retried", "failed") == [
        (30, "work", {"replicas": 3, "tries": 2}),
        (30, "work", {"error": "no machine is free"}),
    ]


def test_of_a_decision_only_the_part_that_is_not_under_way_is_asked_for() -> None:
    engine = SlowEngine(stalls=lambda at: at < 40.0)
    ticks = run(changing((0, wants(work=3)), (30, wants(work=3, read=2))), engine, 45.0)
    assert engine.plans == [(15, {"work": 3}), (30, {"read": 2})]
    second = ticks[1]
    assert second.applied and second.plan == {"read": 2} and second.error == "work 3 is in progress"


def test_without_patience_every_decision_is_asked_for_as_it_comes() -> None:
    engine = SlowEngine(refuses=full(50.0))
    ticks = run(wants(work=3), engine, 90.0, patience=None)
    assert [at for at, _ in engine.asked] == [15, 30, 45, 60]
    assert events(ticks, "failed", "retried", "gave-up") == []


def test_in_a_dry_run_everything_is_decided_and_nothing_carried_out() -> None:
    engine = SlowEngine()
    ticks = run(wants(work=3), engine, 60.0, Guards(cooldown_s=30.0), dry_run=True)
    assert engine.asked == []
    for tick in ticks:
        assert tick.decision is not None and tick.decision.changes == {"work": 3}
        assert (tick.applied, tick.error, dict(tick.plan)) == (False, "dry run", {})


def test_events_of_the_engine_stay_before_those_of_the_loop() -> None:
    engine = SlowEngine(refuses=full(20.0, OSError("x")))
    engine.events.append(HeldEvent(at=14.0, operator="read"))
    (tick,) = run(wants(work=3), engine, 15.0)
    assert [kind_of(event) for event in tick.status.events] == ["held", "failed"]
