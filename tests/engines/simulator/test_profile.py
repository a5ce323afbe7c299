"""A number of a profile is accepted exactly where it changes what a simulator does or shows."""

from dataclasses import fields, replace
from typing import Any

import pytest

from penstock.core.decision import Move
from penstock.engines.port import Plan
from penstock.engines.simulator.batches.model import Batches
from penstock.engines.simulator.builder import build_engine
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import (
    RESOLUTIONS,
    Monitor,
    Profile,
    Queues,
    Rescaling,
    check_used,
    parse_profile,
)
from penstock.errors import InputError, NotReadyError
from penstock.workloads.workload import Workload

BASE = Profile(
    name="base",
    rescaling=Rescaling(pause_s=4.0, pause_s_per_gb=5.0, warmup_s=9.0, warmup_speed=0.5),
    queues=Queues(buffer_s=3.0, retention_s=20.0, queue_size=200, timeout_s=15.0),
    batches=Batches(cold=1.0),
)
#: Another value for each number, with which something must happen otherwise.
OTHER: dict[str, Any] = {
    "rescaling.scope": "nobody",
    "rescaling.pause_s": 7.0,
    "rescaling.pause_s_per_gb": 9.0,
    "rescaling.delay_s": 3.0,
    "rescaling.warmup_s": 20.0,
    "rescaling.warmup_speed": 0.2,
    "rescaling.drops_queues": True,
    "queues.buffer_s": 1.0,
    "queues.retention_s": 10.0,
    "queues.retention_block_s": 15.0,
    "queues.hop_s": 0.5,
    "queues.batch_s": 2.0,
    "queues.queue": "shuffle",
    "queues.arrival_scv": 0.0,
    "queues.queue_size": 50,
    "queues.timeout_s": 5.0,
    "batches.batch_s": 2.0,
    "batches.gap_s": 3.0,
    "batches.fixed_s": 0.5,
    "batches.per_replica_s": 0.1,
    "batches.per_other_s": 0.1,
    "batches.between_s": 0.3,
    "batches.poll_s": 0.2,
    "batches.look_s": 0.2,
    "batches.cold": 3.0,
    "batches.cold_s": 40.0,
    "batches.noise": 0.0,
    "batches.write_s": 0.5,
    "batches.buffer_s": 0.5,
    "monitor.scrape_s": 7.0,
    "monitor.window_s": 40.0,
    "monitor.slope_window_s": 20.0,
    "monitor.lag_slope": "gauge-rate",
    "monitor.busy_sees": 0.7,
    "monitor.cpu_floor": 0.2,
    "monitor.cpu_ceiling": 0.8,
    "monitor.missing": 0.5,
}
PIPELINE = SimulatedPipeline(
    name="two",
    operators=(
        SimulatedOperator(name="a", capacity_rate=20.0, replicas=3, state_mb=200.0, slices=2),
        SimulatedOperator(name="b", upstream=("a",), capacity_rate=10.0, replicas=4, slices=2),
    ),
)
MORE = Plan(replicas={"a": 5, "b": 6})
MOVE = Plan(moves=(Move("a:1", "h1", "new-1"),))
#: Enough for the replicas, too much, and nearly nothing.
LOAD = Workload.of_steps([30, 90, 5], step_s=60.0)


def story(profile: Profile) -> list[str]:
    """All that an engine does and shows, every few seconds, with a change in between."""
    engine = build_engine(PIPELINE, profile, LOAD, "ds2", seed=3)
    told = []
    for second in range(0, 180, 5):
        engine.advance(5)
        if second == 90:
            engine.apply(MOVE if profile.resolution == "hosts" else MORE)
        try:
            told.append(repr(engine.observe()))
        except NotReadyError as why:
            told.append(str(why))
        told.append(repr(engine.status()))
    return told


def is_used(resolution: str, path: str) -> bool:
    section, name = path.split(".")
    try:
        check_used(resolution, section, [name])
    except InputError:
        return False
    return True


def test_every_number_is_looked_at() -> None:
    sections = {"rescaling": Rescaling, "queues": Queues, "batches": Batches, "monitor": Monitor}
    assert set(OTHER) == {f"{s}.{f.name}" for s, kind in sections.items() for f in fields(kind)}


@pytest.mark.slow
@pytest.mark.parametrize("resolution", RESOLUTIONS)
def test_numbers_are_refused_where_they_change_nothing_and_only_there(resolution: str) -> None:
    matters = set()
    for scope in ("job", "nobody"):  # where a change restarts everything, it is not delayed
        base = replace(BASE, resolution=resolution, rescaling=BASE.rescaling.but(scope=scope))
        plain = story(base)
        for path, value in OTHER.items():
            section, name = path.split(".")
            changed = replace(base, **{section: getattr(base, section).but(**{name: value})})
            if story(changed) != plain:
                matters.add(path)
    assert matters == {path for path in OTHER if is_used(resolution, path)}


def test_older_profiles_call_the_resolution_level() -> None:
    assert parse_profile("old", {"level": "batches"}).resolution == "batches"
    with pytest.raises(InputError, match="unknown resolution 'batch'"):
        parse_profile("old", {"level": "batch"})
    with pytest.raises(InputError, match="unknown section"):
        parse_profile("both", {"level": "fluid", "resolution": "fluid"})
