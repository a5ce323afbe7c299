"""Guards: each alone, their order, and what they leave behind."""

from typing import Any

import pytest
from tests.builders import bare, snap

from penstock.core.decision import Decision, Move, Placement, Target, keep
from penstock.core.guards import DecisionHistory, Guards, apply_guards
from penstock.core.reasons import Reason
from penstock.errors import InputError


def decided(at: float = 0.0, **wanted: tuple[int, int]) -> Decision:
    targets = {
        name: Target(current, wants, Reason.FITS if wants == current else Reason.BOTTLENECK)
        for name, (current, wants) in wanted.items()
    }
    return Decision(at, "test", targets)


def guarded(
    decision: Decision, past: DecisionHistory | None = None, **guards: Any
) -> dict[str, int]:
    final = _guard(decision, past, **guards)
    return {name: target.wanted for name, target in final.targets.items()}


def _guard(decision: Decision, past: DecisionHistory | None = None, **guards: Any) -> Decision:
    measures = guards.pop("measures", {})
    ops = [bare(n, t.current, **measures.get(n, {})) for n, t in decision.targets.items()]
    return apply_guards(
        decision, snap(*ops, at=decision.at), past or DecisionHistory(), Guards(**guards)
    )


@pytest.mark.parametrize(
    ("current", "wanted", "factor", "expected"),
    [(4, 4, 1.2, 5), (1, 6, 1.2, 8), (1, 50, 1.1, 55), (10, 10, 1.0, 10)],
)
def test_overprovision_rounds_up(current: int, wanted: int, factor: float, expected: int) -> None:
    assert guarded(decided(a=(current, wanted)), overprovision=factor) == {"a": expected}


def test_overprovision_adds_nothing_to_what_was_merely_kept() -> None:
    targets = {"a": keep(5, Reason.METRICS_MISSING), "b": Target(5, 5, "their-own-reason")}
    assert guarded(Decision(0.0, "test", targets), overprovision=2.0) == {"a": 5, "b": 5}


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        pytest.param(11, 10, id="one in ten is within a tenth"),
        pytest.param(9, 10, id="downwards too"),
        pytest.param(12, 12, id="beyond"),
    ],
)
def test_tolerance_keeps_current(wanted: int, expected: int) -> None:
    assert guarded(decided(a=(10, wanted)), tolerance=0.1) == {"a": expected}


def test_stabilise_takes_the_largest_recent_proposal_before_scaling_in() -> None:
    past = DecisionHistory(
        decided=[decided(0.0, a=(9, 8)), decided(10.0, a=(9, 6)), decided(20.0, a=(9, 5))]
    )
    now = decided(30.0, a=(9, 3))
    assert guarded(now, past, stabilise_s=20) == {"a": 6}
    assert guarded(now, past, stabilise_s=30) == {"a": 8}
    assert guarded(decided(30.0, a=(4, 3)), past, stabilise_s=30) == {"a": 4}
    assert guarded(decided(30.0, a=(2, 3)), past, stabilise_s=30) == {"a": 3}


def test_stabilise_compares_what_was_proposed_not_what_guards_made_of_it() -> None:
    first = _guard(decided(0.0, a=(9, 7)), overprovision=1.2, cooldown_s=60)
    assert first.targets["a"].wanted == 9
    past = DecisionHistory(decided=[first])
    assert guarded(decided(10.0, a=(20, 3)), past, stabilise_s=60) == {"a": 9}


@pytest.mark.parametrize(
    ("measures", "expected"),
    [
        pytest.param({"queue": 0}, 3, id="nothing waits"),
        pytest.param({"queue": 500, "input_rate": 10}, 3, id="50 s of work"),
        pytest.param({"queue": 700, "input_rate": 10}, 9, id="70 s of work"),
        pytest.param({"queue": 5, "input_rate": 0}, 9, id="not moving at all"),
        pytest.param({}, 9, id="nobody knows"),
    ],
)
def test_no_scale_in_while_the_queue_drains(measures: dict, expected: int) -> None:
    seen = guarded(decided(a=(9, 3)), hold_while_draining=60, measures={"a": measures})
    assert seen == {"a": expected}


def test_max_increase_limits_growth_only() -> None:
    assert guarded(decided(a=(5, 40), b=(30, 2)), max_increase=15) == {"a": 20, "b": 2}


def test_bounds_always_hold() -> None:
    bounds = {"a": {"max_parallelism": 12}, "c": {"min_parallelism": 3}}
    seen = guarded(decided(a=(5, 40), b=(5, -3), c=(5, 2)), measures=bounds)
    assert seen == {"a": 12, "b": 1, "c": 3}


def test_what_does_not_help_is_not_added() -> None:
    hot = {"a": {"useful_parallelism": 3}, "b": {"useful_parallelism": 3}}
    assert guarded(decided(a=(2, 9), b=(5, 9)), measures=hot) == {"a": 3, "b": 5}
    assert guarded(decided(a=(5, 1), b=(5, 4)), measures=hot) == {"a": 1, "b": 4}


def test_what_would_help_is_bounded_all_the_same() -> None:
    bounds = {
        "a": {"useful_parallelism": 64, "max_parallelism": 8},
        "b": {"useful_parallelism": 1, "min_parallelism": 3},
    }
    assert guarded(decided(a=(2, 99), b=(1, 9)), measures=bounds) == {"a": 8, "b": 3}


def test_bounds_cannot_be_switched_off() -> None:
    with pytest.raises(InputError, match="always on"):
        Guards(bounds=False)


def test_the_budget_shrinks_all_in_proportion() -> None:
    assert guarded(decided(a=(1, 10), b=(1, 30), c=(1, 20)), budget=30) == {
        "a": 5,
        "b": 15,
        "c": 10,
    }


@pytest.mark.parametrize(
    ("at", "guards", "expected"),
    [
        pytest.param(299.0, {"cooldown_s": 300}, (5, 5), id="too young"),
        pytest.param(300.0, {"cooldown_s": 300}, (9, 2), id="old enough"),
        pytest.param(100.0, {"cooldown_up_s": 300}, (5, 2), id="up only"),
        pytest.param(100.0, {"cooldown_down_s": 300}, (9, 5), id="down only"),
        pytest.param(100.0, {"cooldown_s": 300, "cooldown_up_s": 0}, (9, 5), id="up is free"),
    ],
)
def test_cooldown_counts_from_the_last_change_carried_out(
    at: float, guards: dict, expected: tuple[int, int]
) -> None:
    past = DecisionHistory(applied=[decided(0.0, a=(1, 5))])
    seen = guarded(decided(at, a=(5, 9), b=(5, 2)), past, **guards)
    assert (seen["a"], seen["b"]) == expected


def test_a_held_decrease_does_not_let_an_increase_burst_the_budget() -> None:
    past = DecisionHistory(applied=[decided(0.0, a=(1, 5))])
    seen = guarded(decided(10.0, a=(5, 9), b=(5, 1)), past, cooldown_down_s=60, budget=10)
    assert seen == {"a": 5, "b": 5}


def test_each_guard_leaves_its_reason_in_order() -> None:
    target = _guard(
        decided(a=(4, 20)),
        overprovision=1.5,
        max_increase=10,
        budget=8,
        measures={"a": {"max_parallelism": 12}},
    ).targets["a"]
    steps = [(step.guard, step.before, step.after) for step in target.steps]
    assert steps == [
        ("overprovision", 20, 30),
        ("max_increase", 30, 14),
        ("bounds", 14, 12),
        ("budget", 12, 8),
    ]
    assert (target.proposal, target.wanted, target.reason) == (20, 8, Reason.OVER_BUDGET)


def test_guards_do_not_add_up_over_ticks() -> None:
    proposal = decided(a=(4, 4))
    first = _guard(proposal, overprovision=1.2)
    again = _guard(proposal, DecisionHistory(decided=[first], applied=[first]), overprovision=1.2)
    assert first == again
    assert proposal == decided(a=(4, 4))


def moved(at: float) -> Decision:
    placement = Placement(2, 3, Reason.MEAN_ABOVE_RANGE, (Move("s", "h1", "new-1"),))
    return Decision(at, "enforcer", placement=placement)


def test_moves_cool_down_too() -> None:
    past = DecisionHistory(applied=[moved(0.0)])
    held = apply_guards(moved(20.0), snap(at=20.0), past, Guards(cooldown_s=30)).placement
    assert held is not None
    assert (held.moves, held.wanted, held.reason) == ((), 2, Reason.COOLING_DOWN)
    assert apply_guards(moved(30.0), snap(at=30.0), past, Guards(cooldown_s=30)) == moved(30.0)


def test_moves_know_no_other_guard() -> None:
    with pytest.raises(InputError, match="decides about hosts"):
        apply_guards(moved(0.0), snap(), DecisionHistory(), Guards(budget=3))
