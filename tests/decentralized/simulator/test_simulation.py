"""The simulation: timing, counts and records against hand calculation, both modes alike."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.instance_decision import probability
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.simulation import simulate_setup
from penstock.decentralized.simulator.summary import summarize

MODES = ("exact", "counted")


@pytest.mark.parametrize("mode", MODES)
def test_a_duplication_takes_three_steps_and_its_messages_arrive_in_each(mode: str) -> None:
    # 350 records, from step 5 on 1050: p = floor(1050 / 350 - 1) = 2, so two copies for certain
    setup = DecentralizedSetup(
        operators=2, instances=1, steps=10, every=1, load="jump", growth=3, mode=mode
    )
    series = simulate_setup(setup).operators[1]
    assert series.load == [350] * 5 + [1050] * 5
    assert series.instances == [1] * 7 + [3] * 3
    assert series.messages == [0] * 5 + [1, 1, 2, 0, 0]  # duplication, ack, two start signals


@pytest.mark.parametrize("mode", MODES)
def test_a_deletion_takes_two_steps(mode: str) -> None:
    # no load at all: p = -1, all but the keeper stop at their turn
    setup = DecentralizedSetup(
        operators=2, instances=3, steps=12, every=1, load="jump", growth=1e-6, mode=mode
    )
    timeline = simulate_setup(setup)
    for series in timeline.operators:
        assert series.instances == [3] * 7 + [1] * 5
        assert series.messages == [0] * 6 + [2 * 3, 2 * 3, 0, 0, 0, 0]
    assert {action.end_step for action in timeline.actions} == {7}


@settings(max_examples=25, deadline=None)
@given(
    operators=st.integers(2, 5),
    instances=st.integers(1, 6),
    every=st.integers(1, 6),
    load=st.sampled_from(("brownian", "ramp", "growth", "jump")),
    volatility=st.sampled_from((0.0, 0.1, 0.3, 1.0)),
    growth=st.floats(0.05, 6),
    seed=st.integers(0, 10**6),
)
def test_counted_and_exact_messages_are_equal_at_every_step(**fields: object) -> None:
    setup = {**fields, "steps": 40}
    exact, counted = (simulate_setup(DecentralizedSetup(**setup, mode=mode)) for mode in MODES)  # type: ignore[arg-type]
    assert exact.operators == counted.operators
    assert exact.actions == counted.actions
    assert exact.records == counted.records


def test_the_same_seed_gives_the_same_run_and_another_seed_another_one() -> None:
    first, again, other = (
        simulate_setup(DecentralizedSetup(steps=60, seed=seed)) for seed in (5, 5, 6)
    )
    assert (first.operators, first.actions) == (again.operators, again.actions)
    assert first.operators != other.operators


def test_the_setup_of_the_paper_is_accurate_and_loses_nothing() -> None:
    for seed in range(3):
        figures = summarize(simulate_setup(DecentralizedSetup(seed=seed)))
        assert 0.85 <= figures["accuracy"]["mean"] <= 1.35
        assert figures["records"]["lost"] == 0
        assert figures["nodes"]["min_of_an_operator"] >= 1


def test_every_record_is_processed_or_waits() -> None:
    timeline = simulate_setup(DecentralizedSetup(volatility=0.6, steps=80))
    waiting = sum(series.waiting[-1] for series in timeline.operators)
    assert timeline.records.sent == sum(sum(series.load) for series in timeline.operators)
    assert timeline.records.waiting == waiting > 0


def test_one_instance_at_twice_its_share_never_duplicates() -> None:
    # the flaw of algorithm 2: floor(665 / 350 - 1) = 0 above the capacity of 500
    assert probability(665, 1, 500, 0.7) == 0
    setup = DecentralizedSetup(operators=2, instances=1, load="jump", growth=1.9, steps=100)
    timeline = simulate_setup(setup)
    assert timeline.actions == ()
    assert timeline.operators[0].waiting[-1] == 50 * (665 - 500)


def test_delayed_channels_that_keep_the_order_lose_nothing() -> None:
    for seed in range(4):
        setup = DecentralizedSetup(message_delay=3, record_delay=3, steps=80, seed=seed)
        timeline = simulate_setup(setup)
        assert timeline.records.lost == 0
        assert any(action.end_step for action in timeline.actions)


def test_a_constant_load_on_slow_channels_changes_nothing() -> None:
    # late records count for the load of the step in which they arrive
    setup = DecentralizedSetup(
        load="jump", growth=1, steps=60, message_delay=3, record_delay=3, seed=2
    )
    assert simulate_setup(setup).actions == ()


def test_acknowledgements_that_overtake_records_lose_them() -> None:
    setups = [DecentralizedSetup(record_delay=3, steps=100, seed=seed) for seed in range(4)]
    assert sum(simulate_setup(setup).records.lost for setup in setups) > 0


def test_without_messages_no_action_ends_and_no_record_is_lost() -> None:
    timeline = simulate_setup(DecentralizedSetup(message_loss=1, steps=60))
    assert timeline.actions and all(action.end_step is None for action in timeline.actions)
    assert sum(timeline.total.messages) == 0
    assert timeline.records.lost == 0


@pytest.mark.parametrize(("seed", "operator", "lost_per_step"), [(0, 0, 0), (6, 2, 350)])
def test_neighbours_send_to_a_crashed_instance_for_ever(
    seed: int, operator: int, lost_per_step: int
) -> None:
    # constant load and no decisions: each operator has 3 instances with 350 records each; only the
    # source does not send to the dead one
    setup = DecentralizedSetup(
        operators=3, instances=3, load="jump", growth=1, steps=50, crashes=1, seed=seed, every=60
    )
    timeline = simulate_setup(setup)
    step = timeline.total.instances.index(8)
    assert [min(each.instances) for each in timeline.operators].index(2) == operator
    assert timeline.records.lost == lost_per_step * (50 - step)


@pytest.mark.slow
def test_ten_thousand_instances_take_less_than_a_minute() -> None:
    began_s = time.process_time()
    timeline = simulate_setup(DecentralizedSetup(instances=2000, mode="counted"))
    assert time.process_time() - began_s < 60
    assert timeline.total.instances[0] == 10_000 and timeline.records.lost == 0
