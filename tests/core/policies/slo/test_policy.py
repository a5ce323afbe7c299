"""The policy as a whole: more demand, tighter objectives, backlogs, pauses, useless increases."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from penstock.core.decision import Decision, Target
from penstock.core.frozen_dict import FrozenDict
from penstock.core.policies.slo.arrivals import measure_arrivals
from penstock.core.policies.slo.capacity import find_useful, measure_capacity
from penstock.core.policies.slo.change_cost import hold_s, measure_change_cost
from penstock.core.policies.slo.latency_model import measure_floors, share_objective
from penstock.core.policies.slo.policy import SloParams, delay_small_savings, slo
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


#: A change that took effect at once, so that no pause is expected.
SEEN = Decision(1.0, "slo", FrozenDict({"map": Target(1, 2, Reason.RATE_ABOVE_CAPACITY)}))


def decide(history: list[Snapshot], **params: float) -> Target:
    return slo(history, [SEEN], SloParams(**params)).targets["map"]


def test_the_first_change_may_pause() -> None:
    """Until the first change was seen, it may cost as much as any."""
    first = slo(course(lambda _: 250.0), [], SloParams()).targets["map"]
    assert first.wanted > decide(course(lambda _: 250.0)).wanted


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
    assert decide(history, objective_s=1).reason == Reason.SCALE_DOWN_DELAYED
    later = decide(course(lambda i: 390.0 if i < 30 else 100.0, replicas=4), objective_s=1)
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


def test_the_cost_of_a_change_is_learnt_from_the_silence_behind_it() -> None:
    history = [s for s in course(lambda _: 250.0, replicas=3) if not 300 < s.at < 330]
    change = Decision(300.0, "slo", FrozenDict({"map": Target(2, 3, Reason.RATE_ABOVE_CAPACITY)}))
    cost = measure_change_cost(history, [change])
    assert (cost.interval_s, cost.silent_s, cost.pause_s, cost.effective_s) == (15, 15, 15, 0)
    assert cost.horizon_s == 30
    unknown = measure_change_cost(history, [])
    assert (unknown.pause_s, unknown.silent_s) == (30, 0)
    stated = replace(history[-1].operators["map"], rescale_s=40.0)
    history[-1] = replace(history[-1], operators=FrozenDict({"map": stated}))
    assert measure_change_cost(history, [change]).pause_s == 40


def test_a_long_cool_down_is_not_taken_for_a_pause() -> None:
    history = [s for s in course(lambda _: 250.0, replicas=3) if s.at in (15, 330)]
    change = Decision(15.0, "slo", FrozenDict({"map": Target(2, 3, Reason.RATE_ABOVE_CAPACITY)}))
    cost = measure_change_cost(history, [change])
    assert (cost.interval_s, cost.silent_s, cost.pause_s) == (15, 300, 30)


@pytest.mark.parametrize(
    ("pause_s", "least", "most"), [(0, 60, 60), (40, 5500, 6500), (28, 3000, 4000)]
)
def test_a_pause_beyond_the_objective_makes_changes_rare(
    pause_s: float, least: float, most: float
) -> None:
    cost = replace(measure_change_cost(course(lambda _: 1.0), []), pause_s=pause_s)
    assert least <= hold_s(cost, 10, 0.99) <= most


def test_usual_waits_and_one_backlog_add_up_to_less_than_the_objective() -> None:
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
        usual_s = sum(floors[name] for name in path)
        assert max(waits[name] for name in path) + usual_s <= 10.0


def test_bottlenecks_of_a_path_do_not_wait_one_after_the_other() -> None:
    """Each operator may use all that the usual waits leave: only the slowest one has a backlog."""
    chain = {"a": (), "b": ("a",), "c": ("b",)}
    operators = {
        name: replace(operator(100, 2, queue=50, name=name), upstream=feeders)
        for name, feeders in chain.items()
    }
    now = Snapshot(at=0, offered=FrozenDict({"a": 100.0}), operators=FrozenDict(operators))
    assert share_objective(now, 10.0, measure_floors([now])) == dict.fromkeys(chain, 6.5)


def test_a_step_is_seen_at_once_though_the_offered_rate_is_a_mean_of_a_minute() -> None:
    history = []
    for i in range(12):
        rate = 100.0 if i < 10 else 500.0
        op = replace(operator(100, 1, queue=max(0, i - 9) * 6000.0), input_rate=100.0)
        smooth = 100.0 + 100.0 * max(0, i - 9)
        history.append(
            Snapshot(
                at=15.0 * i, offered=FrozenDict({"map": smooth}), operators=FrozenDict({"map": op})
            )
        )
        assert measure_arrivals("map", history, 15.0)[-1] == pytest.approx(rate)


def test_lost_records_do_not_hide_what_is_offered() -> None:
    """The queue drops half of the records: what was seen to arrive is not the load."""
    history = [
        Snapshot(
            at=15.0 * i,
            offered=FrozenDict({"map": 200.0}),
            operators=FrozenDict({"map": operator(100, 1)}),
        )
        for i in range(12)
    ]
    assert measure_arrivals("map", history, 15.0)[-1] == 200


def test_silence_is_interpolated_so_that_rates_are_at_equal_distances() -> None:
    history = [s for s in course(lambda i: 100.0 + 10 * i, replicas=9) if not 150 < s.at < 300]
    rates = measure_arrivals("map", history, 15.0)
    assert rates == pytest.approx([100.0 + 10 * i for i in range(40)])


def test_replicas_that_worked_say_more_about_capacity_than_idle_ones() -> None:
    idle = replace(operator(10, 1), input_rate=10, busy=0.2)  # 50 records/s, overhead included
    worked = operator(100, 1)
    history = [
        Snapshot(at=15.0 * i, operators=FrozenDict({"map": worked if i % 2 else idle}))
        for i in range(12)
    ]
    capacity = measure_capacity("map", history)
    assert capacity is not None and 80 < capacity.per_replica < 100


def test_nearly_idle_operators_shrink_too() -> None:
    assert decide(course(lambda _: 2.0, replicas=4)).wanted == 1


def test_decreases_wait_until_together_they_save_enough() -> None:
    less = Target(8, 7, Reason.RATE_BELOW_CAPACITY)
    fits, more = Target(4, 4, Reason.FITS), Target(4, 5, Reason.RATE_ABOVE_CAPACITY)
    delayed = delay_small_savings({"a": less, "b": fits})
    assert (delayed["a"].wanted, delayed["a"].reason) == (8, Reason.SCALE_DOWN_DELAYED)
    assert delay_small_savings({"a": less, "b": more})["a"].wanted == 7
    assert delay_small_savings({"a": Target(8, 6, less.reason), "b": fits})["a"].wanted == 6


def test_skew_is_named_where_more_replicas_do_not_help() -> None:
    history = course(lambda _: 900.0, replicas=3)
    skewed = replace(history[-1].operators["map"], useful_parallelism=5)
    history[-1] = replace(history[-1], operators=FrozenDict({"map": skewed}))
    target = decide(history)
    assert (target.wanted, "slice" in target.why) == (5, True)
    history[-1] = replace(
        history[-1], operators=FrozenDict({"map": replace(skewed, parallelism=5)})
    )
    assert decide(history).reason == Reason.INEFFECTIVE
