"""The message formula and the fitted growth, against counted messages and known powers."""

import pytest

from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.simulation import simulate_setup
from penstock.decentralized.simulator.traffic import (
    find_duplication_phases,
    fit_power,
    list_traffic_points,
    predict_messages,
)


def test_one_copy_costs_a_message_and_an_ack_per_neighbour_and_a_start() -> None:
    assert predict_messages(1, 7, 14 + 16) == 2 * 30 + 1


@pytest.mark.parametrize("fields", [{}, {"load": "jump", "growth": 6}, {"volatility": 0.5}])
def test_counted_messages_of_the_exact_mode_follow_the_formula(fields: dict) -> None:
    phases = list(find_duplication_phases(simulate_setup(DecentralizedSetup(**fields))))
    assert len(phases) > 10
    assert all(phase.messages == phase.predicted for phase in phases)
    if fields.get("load") == "jump":  # more copies than instances that decide
        assert any(phase.copies > phase.deciders for phase in phases)


def test_traffic_is_quadratic_only_if_the_copies_grow_with_the_nodes() -> None:
    exponents = {}
    for load in ("ramp", "growth"):
        setup = DecentralizedSetup(load=load, instances=30, mode="counted")
        fit = fit_power(list_traffic_points(simulate_setup(setup)))
        assert fit is not None
        exponents[load] = fit.exponent
    assert exponents["growth"] == pytest.approx(2, abs=0.2)
    assert exponents["ramp"] == pytest.approx(1.1, abs=0.3)


def test_too_few_points_give_no_fit() -> None:
    assert fit_power([(1, 1), (2, 4)]) is None
    assert fit_power([(5, 1)] * 10) is None
