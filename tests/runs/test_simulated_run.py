"""One run as a pure function of its spec."""

import pytest

from penstock.errors import InputError
from penstock.runs.simulated_run import prepare_simulation, simulate
from penstock.runs.spec import SimulationSpec


@pytest.mark.parametrize("policy", ["ds2", "hpa-varga", "flink", "threshold"])
def test_the_same_spec_gives_the_same_run(policy: str) -> None:
    spec = SimulationSpec(policy=policy, minutes=15)
    assert simulate(spec) == simulate(spec)


def test_a_prepared_run_can_be_run_again() -> None:
    prepared = prepare_simulation(SimulationSpec(policy="hpa-varga", minutes=15))
    assert prepared.run() == prepared.run()


def test_another_seed_is_another_run() -> None:
    assert simulate(SimulationSpec(minutes=15)) != simulate(SimulationSpec(minutes=15, seed=7))


def test_the_header_says_what_every_default_came_to() -> None:
    header = prepare_simulation(
        SimulationSpec(guards={"cooldown_s": "60", "max_increase": "off"})
    ).header()
    assert header["guards"] == {
        "overprovision": 1.2, "bounds": True, "budget": 80, "cooldown_s": 60.0,
    }  # fmt: skip
    assert (header["policy"], header["interval_s"], header["duration_s"]) == ("ds2", 15.0, 8400.0)


def test_a_guard_that_is_off_allows_a_change_at_every_tick() -> None:
    assert simulate(SimulationSpec(minutes=5, guards={"cooldown_s": "off"})).rescales_possible == 20


def test_a_policy_with_an_objective_gets_that_of_the_run() -> None:
    """Others do not: the published experiments state what a policy gets of it as a parameter."""
    given = SimulationSpec(policy="slo", minutes=5, objective_s=3.0)
    assert prepare_simulation(given).params.objective_s == 3.0
    default = prepare_simulation(SimulationSpec(policy="slo", minutes=5))
    assert default.params.objective_s == default.objective_s == 60.0
    chosen = SimulationSpec(policy="slo", minutes=5, objective_s=3.0, params={"objective_s": "7"})
    assert prepare_simulation(chosen).params.objective_s == 7.0
    queueing = prepare_simulation(SimulationSpec(policy="queueing", minutes=5, objective_s=3.0))
    assert queueing.params.r_max == 1.0


@pytest.mark.parametrize("interval_s", [0.0, -15.0, 0.5, 7.5, float("nan"), float("inf")])
def test_an_interval_that_no_run_can_have_is_refused(interval_s: float) -> None:
    with pytest.raises(InputError, match="interval: must be"):
        prepare_simulation(SimulationSpec(interval_s=interval_s))
