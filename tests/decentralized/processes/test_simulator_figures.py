"""The simulator gets the load that the source of a process run has sent."""

import pytest

from penstock.decentralized.processes.run_monitor import OperatorSample, RunSample
from penstock.decentralized.processes.run_result import ProcessRunResult
from penstock.decentralized.processes.run_spec import ProcessRunSpec
from penstock.decentralized.processes.simulator_figures import figures_of_run, simulate_load


def run_with(rates: list[float], *, operators: int = 3, instances: int = 2) -> ProcessRunResult:
    """A run of one sample per second and rate, and of one more after the load."""
    spec = ProcessRunSpec(operators=operators, instances=instances, capacity=20)
    samples = [
        sample(i + 1.0, rate, operators, i < len(rates)) for i, rate in enumerate([*rates, 0])
    ]
    return ProcessRunResult(
        spec=spec,
        seconds=len(rates) + 1,
        sent=int(sum(rates)),
        accounts=(),
        actions=(),
        messages={},
        samples=tuple(samples),
        peak_processes=9,
        started_processes=9,
        latencies_s=(),
        has_right_counts=True,
        wrong_views=(),
        strangers=0,
    )


def sample(at_s: float, rate: float, operators: int, is_loaded: bool) -> RunSample:
    operator = OperatorSample(
        name="map", active=2, starting=0, stopping=0, load=rate, queue=0, ideal=2
    )
    return RunSample(
        at_s=at_s,
        is_loaded=is_loaded,
        offered=rate,
        operators=(operator,) * operators,
        messages=5,
        processes=9,
        sent=0,
        delivered=0,
        actions=0,
    )


def test_a_load_that_fits_the_instances_changes_nothing() -> None:
    # 2 instances x 20 records/s x 0.7
    figures = simulate_load(run_with([28.0] * 10))
    assert figures is not None
    assert (figures.actions, figures.messages) == (0, 0)
    assert figures.accuracy_mean == figures.ideal_throughput == 1


def test_a_load_that_grows_needs_as_many_instances_as_the_rule_says() -> None:
    figures = simulate_load(run_with([140.0] * 60))
    assert figures is not None
    # 140 / (0.7 x 20) = 10 instances of each of three operators, after some seconds
    assert figures.nodes_started >= 3 * (10 - 2) - 3
    assert figures.accuracy_p95 >= 0.9
    assert 0.7 < figures.accuracy_mean <= 1.1
    assert figures.messages > figures.actions * 2


def test_the_simulator_needs_two_operators_and_two_steps() -> None:
    assert simulate_load(run_with([28.0], operators=1)) is None
    assert simulate_load(run_with([])) is None
    assert simulate_load(run_with([28.0])) is not None


def test_a_run_is_counted_while_its_load_lasts() -> None:
    figures = figures_of_run(run_with([40.0] * 4))
    assert figures.messages == 4 * 5
    assert figures.to_json()["accuracy_mean"] == 1
    assert figures.ideal_throughput == pytest.approx(1)
