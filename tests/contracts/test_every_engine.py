"""General tests that all engines pass."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.contracts.engine_checks import AT_MOST, CHECKS, OFFERED_RATE, REPLICA_RATE, Make, Paced

from penstock.engines.simulator.builder import build_engine
from penstock.engines.simulator.library import load_profile, profiles
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.workloads.workload import Workload

pytestmark = pytest.mark.slow

RECORDED = Path(__file__).parents[1] / "recorded"

PIPELINE = SimulatedPipeline(
    name="two",
    operators=(
        SimulatedOperator(
            name="first", capacity_rate=REPLICA_RATE, replicas=2, max_replicas=AT_MOST
        ),
        SimulatedOperator(
            name="second",
            upstream=("first",),
            capacity_rate=REPLICA_RATE,
            replicas=2,
            max_replicas=AT_MOST,
        ),
    ),
)
#: Those that ship, and others for more resolutions.
#: Slices on hosts have other tests: nothing there has replicas.
SHIPPED = {name: load_profile(name) for name in profiles()}
PROFILES = {name: p for name, p in SHIPPED.items() if p.resolution != "hosts"}
PROFILES["micro-batches"] = load_profile(str(RECORDED / "fluid-micro-batches.toml"))
PROFILES["batches"] = replace(PROFILES["micro-batches"], resolution="batches")
PROFILES["batches-job"] = replace(
    PROFILES["batches"], rescaling=PROFILES["batches"].rescaling.but(scope="job")
)
LOAD = Workload.of_steps([OFFERED_RATE] * 60, step_s=60.0)


def maker(profile: str) -> Make:
    """Makes engines of one profile, each the same."""

    def make() -> Paced:
        return Paced(build_engine(PIPELINE, PROFILES[profile], LOAD, "ds2", seed=1))

    return make


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize("profile", PROFILES)
def test_every_engine(profile: str, check: Callable[[Make], None]) -> None:
    check(maker(profile))


@pytest.mark.parametrize("profile", PROFILES)
def test_simulators_repeat_themselves_bit_for_bit(profile: str) -> None:
    runs = []
    for step in (60, 15):
        engine = maker(profile)()
        for _ in range(300 // step):
            engine.advance(step)
        runs.append((engine.observe().operators["first"].queue, engine.status().processed_records))
    assert runs[0] == runs[1]
