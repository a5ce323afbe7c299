"""Slices on simulated hosts: queueing theory, counted by hand, and conservation."""

import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.core.decision import Move
from penstock.core.histogram import Histogram
from penstock.engines.events import RunningEvent
from penstock.engines.port import HOSTS, Plan
from penstock.engines.simulator.hosts.engine import HostEngine
from penstock.engines.simulator.hosts.host_placement import spread_slices
from penstock.engines.simulator.hosts.slice_table import build_slice_table
from penstock.engines.simulator.library import load_pipeline, load_profile
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Rescaling
from penstock.errors import InputError, NotReadyError
from penstock.lab.simulation import simulate_run
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec
from penstock.workloads.workload import Workload

PROFILE = load_profile("streamhub")
HUB = load_pipeline("streamhub")


def make(rate: float, hosts: int = 1, pipeline: SimulatedPipeline = HUB) -> HostEngine:
    """An engine under a constant load."""
    load = Workload.of_steps([rate] * 60)
    return HostEngine(pipeline, PROFILE, load, hosts=hosts, seed=1)


def latency(engine: HostEngine) -> Histogram:
    """The delays since the last call."""
    return engine.status().latency["AP > M > EP"]


def test_nothing_can_be_observed_before_a_probe_was_read() -> None:
    engine = make(10)
    with pytest.raises(NotReadyError):
        engine.observe()
    engine.advance(5)
    assert engine.observe() == engine.observe()


def test_the_load_of_hosts_is_what_the_records_cost() -> None:
    engine = make(20)
    engine.advance(300)
    cost_s = sum(1 / operator.capacity_rate for operator in HUB.operators)
    [host] = engine.observe().hosts.values()
    assert host.load == pytest.approx(20 * cost_s, rel=0.1)
    matching = sum(piece.cpu for name, piece in host.slices.items() if name.startswith("M:"))
    assert matching == pytest.approx(20 / 72.5, rel=0.1)
    assert sum(piece.memory for piece in host.slices.values()) == pytest.approx(100)


def test_a_host_carries_no_more_than_its_processor_allows() -> None:
    engine = make(100)
    engine.advance(300)
    assert engine.observe().hosts["h1"].load == pytest.approx(1.0, abs=1e-6)
    status = engine.status()
    assert status.backlog_records == status.offered_records - status.processed_records > 10_000


def test_without_waiting_a_record_takes_its_processor_time_and_three_hops() -> None:
    engine = make(0.05, hosts=4)
    engine.advance(3000)
    service_s = 1 / 263 + 1 / 72.5 / 16 + 1 / 263
    assert latency(engine).mean == pytest.approx(service_s + 3 * 0.0155, rel=0.01)


def test_a_move_stops_a_slice_for_its_time_and_delays_records() -> None:
    still = tuple(replace(operator, move_cv=0.0) for operator in HUB.operators)
    engine = make(20, hosts=2, pipeline=replace(HUB, operators=still))
    engine.advance(60)
    usual = latency(engine).max
    engine.apply(Plan(moves=(Move("M:1", "h2", "h1"),)))
    engine.advance(10)
    move_s = 1.152 + 100 / 16 / 1000 * 27.6
    assert latency(engine).max == pytest.approx(move_s + usual, abs=0.1)
    engine.advance(60)
    assert latency(engine).max == pytest.approx(usual, rel=0.3)


def test_hosts_come_with_the_first_slice_and_end_with_the_last() -> None:
    engine = make(5)
    engine.advance(10)
    engine.apply(Plan(moves=(Move("AP:1", "h1", "new-1"), Move("EP:1", "h1", "new-1"))))
    engine.advance(10)
    status = engine.status()
    assert dict(status.running) == {HOSTS: 2}
    assert status.events == (RunningEvent(at=10.0, operator=HOSTS, replicas=2, before=1),)
    snapshot = engine.observe()
    assert sorted(snapshot.hosts["h2"].slices) == ["AP:1", "EP:1"]
    engine.apply(Plan(moves=(Move("AP:1", "h2", "h1"), Move("EP:1", "h2", "h1"))))
    assert dict(engine.status().running) == {HOSTS: 2}  # it ends when its slices have arrived
    engine.advance(10)
    assert dict(engine.status().running) == {HOSTS: 1}
    assert engine.status().replica_s[HOSTS] == pytest.approx(40, abs=1)


@pytest.mark.parametrize(
    ("plan", "field"),
    [
        (Plan(replicas={"AP": 2}), "replicas.AP"),
        (Plan(moves=(Move("AP:9", "h1", "h1"),)), "moves.AP:9"),
        (Plan(moves=(Move("AP:1", "h7", "h1"),)), "moves.AP:1"),
    ],
)
def test_a_plan_that_names_what_is_not_there_is_refused(plan: Plan, field: str) -> None:
    with pytest.raises(InputError) as caught:
        make(5).apply(plan)
    assert caught.value.field == field


@settings(max_examples=25, deadline=None)
@given(
    rate=st.floats(0, 150),
    hosts=st.integers(1, 12),
    targets=st.lists(st.tuples(st.integers(0, 31), st.integers(0, 3)), max_size=8),
)
def test_every_record_is_counted_once_wherever_slices_move(
    rate: float, hosts: int, targets: list[tuple[int, int]]
) -> None:
    engine = make(rate, hosts)
    for row, target in targets:
        engine.advance(2)
        at = {name: host for host, of in engine.observe().hosts.items() for name in of.slices}
        name = sorted(at)[row]
        place = f"new-{target}" if target > 1 else sorted(set(at.values()))[0]
        if at[name] != place:
            engine.apply(Plan(moves=(Move(name, at[name], place),)))
        assert sorted(at) == sorted(build_slice_table(HUB, Rescaling()).names)
    engine.advance(30)
    status = engine.status()
    assert status.processed_records + status.backlog_records == status.offered_records
    assert status.processed_records >= 0 and status.backlog_records >= 0


def test_the_same_seed_gives_the_same_run_whatever_the_steps() -> None:
    runs = []
    for step in (60, 15):
        engine = make(30)
        for _ in range(300 // step):
            engine.advance(step)
        runs.append((engine.observe(), engine.status().processed_records))
    assert runs[0] == runs[1]


def test_operators_get_hosts_by_their_slices() -> None:
    table = build_slice_table(HUB, Rescaling())
    for hosts, parts in ((2, (1, 1, 1)), (4, (1, 2, 1)), (8, (2, 4, 2)), (12, (3, 6, 3))):
        home = spread_slices(table, hosts)
        assert tuple(len(set(home[rows].tolist())) for rows in table.stages) == parts, hosts
    assert max(spread_slices(table, 12)[table.stages[1]].tolist().count(h) for h in range(12)) == 3


def test_a_pipeline_without_slices_is_refused() -> None:
    plain = SimulatedPipeline(
        name="plain", operators=(SimulatedOperator(name="one", capacity_rate=10.0),)
    )
    with pytest.raises(InputError, match="plain: one has no slices"):
        make(5, pipeline=plain)
    with pytest.raises(InputError, match="q1: source has no slices"):
        prepare_simulation(
            SimulationSpec(engine="streamhub", query="q1", policy="enforcer", minutes=1)
        ).engine()


def test_engines_take_policies_that_decide_about_what_they_scale() -> None:
    with pytest.raises(InputError, match="ds2 decides about operators") as caught:
        prepare_simulation(SimulationSpec(engine="streamhub", query="streamhub", policy="ds2"))
    assert "enforcer" in caught.value.hint
    with pytest.raises(InputError, match="enforcer decides about hosts"):
        prepare_simulation(SimulationSpec(engine="flink", query="q1", policy="enforcer"))
    with pytest.raises(InputError, match="from 1 to the number of slices"):
        prepare_simulation(
            SimulationSpec(
                engine="streamhub", query="streamhub", policy="enforcer", initial={"hosts": 33}
            )
        )


def test_the_enforcer_adds_hosts_until_their_mean_is_within_its_range() -> None:
    spec = SimulationSpec(
        engine="streamhub",
        query="streamhub",
        policy="enforcer",
        workload="constant",
        workload_params={"rate": 100.0},
        minutes=8,
    )
    result = simulate_run(spec, has_directory=False).result
    scores = result.scores
    assert scores is not None
    needed = 100 * sum(1 / operator.capacity_rate for operator in HUB.operators)
    assert math.ceil(needed / 0.7) <= scores.replicas.max <= math.ceil(needed / 0.3)
    assert scores.operators[HOSTS].rescales >= 2
    assert scores.backlog_records < 50
