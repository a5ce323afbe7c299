"""The Flink autoscaler's rules, with the vectors worked out from its source."""

from typing import Any

import pytest
from tests.builders import bare, snap

from penstock.core.decision import Decision, Target
from penstock.core.policies.flink.evaluation import scalability
from penstock.core.policies.flink.policy import FlinkParams, align, flink
from penstock.core.reasons import Reason
from penstock.core.snapshot import Snapshot

AT_ONCE = {"window_s": 0, "stabilization_s": 0}


def source(k: int, rate: float, busy: float, lag: float = 0, slope: float = 0, at: float = 0):
    op = bare("s", k, input_rate=rate, output_rate=rate, busy=busy, queue=lag, queue_growth=slope)
    return snap(op, at=at, offered=rate + slope)


def target(*history: Snapshot, applied: list[Decision] | None = None, **params: Any) -> Target:
    given = FlinkParams.parse(AT_ONCE | params)
    return flink(list(history), applied or [], given).targets["s"]


def test_vector_a_demand_lag_and_restart_add_up() -> None:
    answer = target(source(4, 1000, 0.9, lag=60_000, slope=200))
    assert answer.numbers["target"] == 1200
    assert answer.numbers["capacity"] == pytest.approx(1111.1, abs=0.1)
    assert [answer.numbers[n] for n in ("needed", "up", "down")] == [1948, 1233, 3233]
    assert answer.numbers["scale"] == pytest.approx(1.7532, abs=1e-4)
    assert answer.wanted == 8


@pytest.mark.parametrize(("partitions", "expected"), [("s:12", 12), ("128", 8)])
def test_vector_a_aligned(partitions: str, expected: int) -> None:
    now = source(4, 1000, 0.9, lag=60_000, slope=200)
    assert target(now, partitions=partitions).wanted == expected
    assert target(now, partitions=partitions, alignment="evenly-spread").wanted == expected


def test_vector_b_a_decrease_is_limited_and_delayed() -> None:
    now = source(10, 1000, 0.2)
    assert target(now).reason == Reason.SCALE_DOWN_DELAYED
    assert target(now, scale_down_interval_s=0).wanted == 4
    assert align(4, 10, 7, 200, "balanced") == 7


def test_vector_c_no_action_at_95_percent_busy() -> None:
    assert target(source(4, 1000, 0.95)).reason == Reason.INSIDE_BAND


def test_vector_d_scalability() -> None:
    assert scalability([(4, 4000), (8, 7000), (16, 12000)], 0.5) == 0.79


def test_vector_e_idle_shrinks_as_far_as_one_action_may() -> None:
    answer = target(source(10, 0, 0.0), scale_down_interval_s=0)
    assert answer.numbers["scale"] == pytest.approx(0.4)
    assert answer.wanted == 4


def test_silent_until_stable_and_the_window_is_full() -> None:
    history = [source(4, 1000, 1.0, slope=500, lag=500 * t, at=t) for t in range(0, 1260, 60)]
    for n in range(1, len(history) + 1):
        answer = target(*history[:n], window_s=900, stabilization_s=300)
        early = history[n - 1].at < 1200
        assert (answer.reason == Reason.WINDOW_NOT_FULL) == early


def test_every_change_begins_the_silence_anew() -> None:
    history = [source(4, 1000, 1.0, slope=500, at=t) for t in range(0, 1260, 60)]
    changed = [*history[:-1], source(5, 1000, 1.0, slope=500, at=1200)]
    assert target(*changed, window_s=900, stabilization_s=300).reason == Reason.WINDOW_NOT_FULL
    before = Decision(600.0, "flink", {"s": Target(3, 4, Reason.BOTTLENECK)})
    answer = target(*history, applied=[before], window_s=900, stabilization_s=300)
    assert answer.reason == Reason.WINDOW_NOT_FULL


def test_a_delayed_decrease_takes_the_largest_recommendation_of_its_interval() -> None:
    rates = [200, 350, 200, 200]  # of 1000 that ten replicas can take
    history = [source(10, rate, rate / 1000, at=60.0 * i) for i, rate in enumerate(rates)]
    assert target(*history, scale_down_interval_s=181).reason == Reason.SCALE_DOWN_DELAYED
    assert target(*history, scale_down_interval_s=180).wanted == 6
    assert target(*history, scale_down_interval_s=60).wanted == 4


def test_nothing_shrinks_while_there_is_a_backlog() -> None:
    now = source(10, 100, 0.1, lag=100 * 301)
    assert target(now, scale_down_interval_s=0, catch_up_s=0).wanted == 10


def test_observed_capacity_is_trusted_over_an_optimistic_busy_time() -> None:
    history = [source(4, 1000, 0.5, lag=40_000, at=at) for at in (0.0, 60.0)]
    answer = target(*history, window_s=60)
    assert answer.numbers["capacity"] == 1000


def test_a_join_gets_the_rest_of_what_its_other_input_sends() -> None:
    a = bare("s", 1, input_rate=100, output_rate=50, busy=1.0, queue=0, queue_growth=50)
    b = bare("b", 1, input_rate=10, output_rate=10, busy=0.5, queue=0, queue_growth=0)
    j = bare("j", 1, upstream=("s", "b"), input_rate=60, output_rate=5, busy=0.9)
    decision = flink([snap(a, b, j)], [], FlinkParams.parse(AT_ONCE))
    # 50 of 60 come from s, whose target is 150: 150 x 0.5 + 10
    assert decision.targets["j"].numbers["target"] == pytest.approx(85)


def test_an_increase_that_did_not_help_is_not_repeated() -> None:
    grown = Target(2, 4, Reason.RATE_ABOVE_CAPACITY, "", {"capacity": 1000.0, "expected": 2000.0})
    applied = [Decision(-100.0, "flink", {"s": grown})]
    now = source(4, 1050, 1.0, slope=1000)
    assert target(now, applied=applied).wanted > 4
    assert target(now, applied=applied, effectiveness=True).reason == Reason.INEFFECTIVE
    better = source(4, 1900, 1.0, slope=1000)
    assert target(better, applied=applied, effectiveness=True).wanted > 4


def test_sub_linear_speed_up_asks_for_more() -> None:
    applied = [
        Decision(-1000.0 + p, "flink", {"s": Target(p, p, Reason.FITS, "", {"capacity": r})})
        for p, r in [(4, 4000.0), (8, 7000.0), (16, 12000.0)]
    ]
    now = source(16, 12_000, 1.0, slope=3000)
    assert (
        target(now, applied=applied, scalability=True).wanted > target(now, applied=applied).wanted
    )


def test_alignment_can_be_switched_off() -> None:
    assert align(5, 4, 12, 200, "off") == 5
    assert align(13, 4, 12, 200, "balanced") == 13
