"""The resolutions fluid and records agree in their means where both apply."""

from dataclasses import replace

import pytest

from penstock.engines.port import Engine, Plan
from penstock.engines.simulator.builder import build_engine
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Profile, Queues, Rescaling
from penstock.workloads.workload import Workload

#: Even arrivals and service times: what varies in between is what the fluid model leaves out.
EVEN = Profile(name="even", queues=Queues(arrival_scv=0.0), rescaling=Rescaling(scope="nobody"))
PIPELINE = SimulatedPipeline(
    name="two",
    operators=(
        SimulatedOperator(
            name="a", capacity_rate=20.0, replicas=3, distribution="deterministic", sent={"b": 0.5}
        ),
        SimulatedOperator(
            name="b", upstream=("a",), capacity_rate=10.0, replicas=4, distribution="deterministic"
        ),
    ),
)
#: Below, above and again below what three replicas of `a` carry.
LOAD = Workload.of_steps([30, 90, 20], step_s=120.0)


def run(resolution: str, profile: Profile = EVEN) -> Engine:
    return build_engine(PIPELINE, replace(profile, resolution=resolution), LOAD, "ds2", seed=3)


@pytest.mark.parametrize("until", [100, 200, 350])
def test_throughput_and_backlog_agree(until: int) -> None:
    fluid, records = run("fluid"), run("records")
    for engine in (fluid, records):
        engine.advance(until)
    one, two = fluid.status(), records.status()
    assert one.offered_records == pytest.approx(two.offered_records, rel=0.01, abs=2)
    assert one.processed_records == pytest.approx(two.processed_records, rel=0.05, abs=5)
    assert one.backlog_records == pytest.approx(two.backlog_records, rel=0.05, abs=10)


def test_busy_shares_agree() -> None:
    """At 30 records/s: half of what the first operator carries, 15 of 40 of the second."""
    for resolution in ("fluid", "records"):
        engine = run(resolution)
        engine.advance(100)
        seen = engine.observe().operators
        assert seen["a"].busy == pytest.approx(0.5, rel=0.05)
        assert seen["b"].busy == pytest.approx(0.375, rel=0.05)


def test_mean_latency_under_backlog_agrees() -> None:
    means = []
    for resolution in ("fluid", "records"):
        engine = run(resolution)
        engine.advance(240)
        (latency,) = engine.status().latency.values()
        means.append(latency.mean)
    assert means[0] == pytest.approx(means[1], rel=0.05)


def test_they_drain_alike_after_a_change() -> None:
    backlogs = []
    for resolution in ("fluid", "records"):
        engine = run(resolution)
        engine.advance(200)
        engine.apply(Plan(replicas={"a": 5, "b": 5}))
        engine.advance(20)
        backlogs.append(engine.observe().operators["a"].queue or 0.0)
    assert backlogs[0] == pytest.approx(backlogs[1], rel=0.05, abs=20)
