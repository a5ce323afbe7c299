"""The policy as a whole: more demand, tighter objectives, backlogs, pauses, useless increases."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.core.decision import Decision, Target
from penstock.core.frozen_dict import FrozenDict
from penstock.core.policies.slo.capacity import find_useful
from penstock.core.policies.slo.change_cost import measure_change_cost
from penstock.core.policies.slo.latency_model import measure_floors, share_objective
from penstock.core.policies.slo.policy import SloParams, hold_s, slo
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot

CAPACITY = 100.0


def operator(rate: float, replicas: int, queue: float = 0.0, name: str = "map") -> OperatorSnapshot:
    taken = min(rate, replicas * CAPACITY)
    return OperatorSnapshot(
        name=name,
        parallelism=replicas,
        input_rate=taken,
        output_rate=taken,
        busy=taken / (replicas * CAPACITY),
        queue=queue,
    )


def course(
    rate: Callable[[int], float], replicas: int = 2, ticks: int = 40, queue: float = 0.0
) -> list[Snapshot]:
    return [
        Snapshot(
            at=15.0 * i,
            offered=FrozenDict({"map": rate(i)}),
            operators=FrozenDict(
                {"map": operator(rate(i), replicas, queue if i == ticks - 1 else 0)}
            ),
        )
        for i in range(ticks)
    ]


def decide(history: list[Snapshot], **params: float) -> Target:
    return slo(history, [], SloParams(**params)).targets["map"]


def test_a_steady_load_gets_what_carries_it() -> None:
    assert decide(course(lambda _: 250.0)).wanted == 3
    assert decide(course(lambda _: 250.0, replicas=3)).reason == Reason.FITS


def test_a_tighter_objective_never_takes_fewer() -> None:
    jagged = course(lambda i: 200.0 + 300 * (i % 3 == 0), replicas=3)
    wanted = [decide(jagged, objective_s=s).wanted for s in (60, 20, 5, 1)]
    assert wanted == sorted(wanted)
    assert wanted[0] < wanted[-1]


def test_a_backlog_is_worked_off_within_the_objective_or_an_interval() -> None:
    assert decide(course(lambda _: 150.0, queue=6000)).wanted > 2
    assert (
        decide(course(lambda _: 150.0, queue=300)).wanted == 2
    )  # waits 1.5 s: within the objective


def test_fewer_replicas_only_after_the_load_has_been_low_for_as_long_as_a_change_costs() -> None:
    history = course(lambda i: 390.0 if i < 39 else 100.0, replicas=4)
    assert decide(history).reason == Reason.SCALE_DOWN_DELAYED
    later = decide(course(lambda i: 390.0 if i < 30 else 100.0, replicas=4))
    assert later.wanted < 4
    assert later.numbers["wanted"] == later.wanted


def test_missing_measures_change_nothing() -> None:
    history = course(lambda _: 250.0)
    blind = replace(history[-1].operators["map"], input_rate=None, busy=None, queue=None)
    history[-1] = replace(history[-1], operators=FrozenDict({"map": blind}))
    assert decide(history).reason == Reason.METRICS_MISSING


def test_an_increase_that_brought_nothing_is_not_repeated() -> None:
    """Four replicas take as much as two: another part of the machine is the limit."""
    history = [
        Snapshot(
            at=15.0 * i,
            offered=FrozenDict({"map": 400.0}),
            operators=FrozenDict(
                {"map": replace(operator(400, k), input_rate=200, busy=1, queue=900)}
            ),
        )
        for i, k in enumerate([2] * 6 + [4] * 6)
    ]
    target = slo(history, [], SloParams()).targets["map"]
    assert (target.wanted, target.reason) == (4, Reason.INEFFECTIVE)
    assert find_useful([s.operators["map"] for s in history]) == 2


def test_a_pause_is_learnt_from_the_gap_behind_a_change() -> None:
    history = [s for s in course(lambda _: 250.0, replicas=3) if not 300 < s.at < 330]
    change = Decision(300.0, "slo", FrozenDict({"map": Target(2, 3, Reason.RATE_ABOVE_CAPACITY)}))
    cost = measure_change_cost(history, [change])
    assert (cost.interval_s, cost.pause_s, cost.effective_s) == (15, 15, 30)
    assert measure_change_cost(history, []).pause_s == 0
    stated = replace(history[-1].operators["map"], rescale_s=40.0)
    history[-1] = replace(history[-1], operators=FrozenDict({"map": stated}))
    assert measure_change_cost(history, [change]).pause_s == 40


@pytest.mark.parametrize(("pause_s", "least", "most"), [(0, 30, 30), (5, 40, 40), (28, 3000, 4000)])
def test_a_pause_beyond_the_objective_makes_changes_rare(
    pause_s: float, least: float, most: float
) -> None:
    cost = replace(measure_change_cost(course(lambda _: 1.0), []), pause_s=pause_s)
    assert least <= hold_s(cost, SloParams(objective_s=10, share=0.99)) <= most


def test_waits_of_a_path_add_up_to_less_than_the_objective() -> None:
    names = ["a", "b", "c", "d"]
    feeds = {"a": (), "b": ("a",), "c": ("a",), "d": ("b", "c")}
    operators = {
        name: replace(operator(100, 2, queue=50, name=name), upstream=feeds[name]) for name in names
    }
    now = Snapshot(at=0, offered=FrozenDict({"a": 100.0}), operators=FrozenDict(operators))
    floors = measure_floors([now])
    assert floors == dict.fromkeys(names, 0.5)
    waits = share_objective(now, 10.0, floors)
    for path in (["a", "b", "d"], ["a", "c", "d"]):
        assert sum(waits[n] + floors[n] for n in path) <= 10.0
