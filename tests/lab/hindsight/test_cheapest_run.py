"""Hindsight against brute force, against the engine, and against what must always hold."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.control.loop import Tick
from penstock.engines.port import Plan
from penstock.engines.simulator.fluid.engine import FluidEngine
from penstock.engines.simulator.fluid.rescale import RescaleInProgress
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Profile, Queues, Rescaling
from penstock.errors import InputError
from penstock.lab.hindsight.cheapest_run import (
    Hindsight,
    compute_hindsight,
    make_hindsight_key,
    min_latency_s,
)
from penstock.lab.hindsight.ladder import Changes, Ladder, build_ladder
from penstock.runs.scores import score
from penstock.runs.simulated_run import PreparedSimulation, prepare_simulation
from penstock.runs.spec import SimulationSpec
from penstock.workloads.workload import Workload

pytestmark = pytest.mark.slow

MICRO_BATCHES = str(Path(__file__).parents[2] / "recorded" / "fluid-micro-batches.toml")
TICK_S = 15
MAP = SimulatedOperator(name="map", capacity_rate=10.0, state_mb=1000.0)
SINK = SimulatedOperator(name="sink", capacity_rate=14.0, upstream=("map",), native=True)
ONE = SimulatedPipeline(name="one", operators=(MAP,))
TWO = SimulatedPipeline(name="two", operators=(replace(MAP, sent={"sink": 0.5}), SINK))
ANY = prepare_simulation(SimulationSpec())

FREE = Rescaling(scope="nobody")
JOB = Rescaling(scope="job", pause_s=8, warmup_s=6, warmup_speed=0.5)
RULES = [
    FREE,
    JOB,
    Rescaling(scope="job", pause_s=20, pause_s_per_gb=3),
    Rescaling(scope="job", warmup_s=10, warmup_speed=0.2),
    Rescaling(scope="operator", pause_s=2, pause_s_per_gb=5.5, warmup_s=5, warmup_speed=0.3),
    Rescaling(scope="native", pause_s=7.5, warmup_s=4.5, warmup_speed=0.5),
    Rescaling(scope="nobody", delay_s=3, warmup_s=12, warmup_speed=0.1),
    replace(JOB, drops_queues=True),
]


def case(
    rates: list[float],
    rules: Rescaling = FREE,
    objective_s: float = 20.0,
    pipeline: SimulatedPipeline = ONE,
    **more: Any,
) -> PreparedSimulation:
    """A small run: one rate a tick of 15 s, in an engine with these rules."""
    queues = more.pop("queues", Queues())
    step_s = more.pop("step_s", TICK_S)
    profile = Profile(name="test", summary="", rescaling=rules, queues=queues, **more)
    load = Workload.of_steps(rates, step_s)
    return replace(ANY, load=load, pipeline=pipeline, profile=profile, objective_s=objective_s)


# --- brute force


class BruteForce:
    """Tries every sequence, with real cohorts and the engine's `RescaleInProgress`."""

    def __init__(self, prepared: PreparedSimulation, ladder: Ladder) -> None:
        self.pipeline, self.rules = prepared.pipeline, prepared.profile.rescaling
        self.visits = self.pipeline.visits()
        anyway_s = min_latency_s(self.pipeline, prepared.profile.queues)
        self.oldest = int(prepared.objective_s - anyway_s)
        self.arrivals = np.diff(prepared.load.integrals(np.arange(prepared.load.duration_s + 1)))
        self.ticks = -(-len(self.arrivals) // TICK_S)
        self.vectors = [tuple(row) for row in ladder.replicas.tolist()]
        self.hold = max(1, -(-int(np.ceil(Changes(ladder, self.rules).settle_s)) // TICK_S))
        self.speeds = cache(self._speeds)

    def _speeds(self, before: tuple[int, ...], after: tuple[int, ...]) -> list[float]:
        """Records/s that the slowest operator lets through in each second after a change."""
        change = RescaleInProgress(self.rules, self.started(before).operators)
        change.request(dict(enumerate(after)), -self.rules.delay_s)
        speeds = []
        for second in range(self.hold * TICK_S):
            list(change.advance(second))
            each = zip(change.running, change.speeds(second), self.pipeline.operators, strict=True)
            rates = [k * v * op.capacity_rate / self.visits[op.name] for k, v, op in each]
            speeds.append(min(rates))
        return speeds

    def started(self, vector: tuple[int, ...]) -> SimulatedPipeline:
        return self.pipeline.starting_with(dict(zip(self.pipeline.names, vector, strict=True)))

    def run(
        self, tick: int, speeds: list[float], waiting: tuple[tuple[int, float], ...]
    ) -> tuple[tuple[int, float], ...] | None:
        """What waits after these seconds, None if something became too old."""
        queue = list(waiting)
        for second, able in enumerate(speeds, tick * TICK_S):
            if second >= len(self.arrivals):
                break
            queue.append((second, float(self.arrivals[second])))
            while queue and able > 0:
                born, records = queue[0]
                taken = min(records, able)
                able -= taken
                queue[0] = (born, records - taken)
                if queue[0][1] > 1e-9:
                    break
                queue.pop(0)
            if any(second - born >= self.oldest and records > 1e-6 for born, records in queue):
                return None
        return tuple(queue)

    def cost(self, tick: int, vector: tuple[int, ...], waiting: Any = ()) -> float:
        """Least replica-seconds from a tick on; infinite if nothing will do."""
        if tick >= self.ticks:
            return 0.0
        ways = [(vector, 1, self.speeds(vector, vector)[:TICK_S])]
        empty = sum(records for _, records in waiting) < 1e-6
        if tick and tick + self.hold <= self.ticks and (empty or not self.rules.drops_queues):
            others = (other for other in self.vectors if other != vector)
            ways += [(other, self.hold, self.speeds(vector, other)) for other in others]
        return min(self._way(tick, way, waiting) for way in ways)

    def _way(self, tick: int, way: Any, waiting: Any) -> float:
        vector, length, speeds = way
        if (after := self.run(tick, speeds, waiting)) is None:
            return float("inf")
        seconds = min((tick + length) * TICK_S, len(self.arrivals)) - tick * TICK_S
        return sum(vector) * seconds + self.cost(tick + length, vector, after)

    def best(self) -> float:
        return min(self.cost(0, vector) for vector in self.vectors)


def whole_ladder(prepared: PreparedSimulation) -> Ladder:
    return build_ladder(prepared.pipeline, prepared.profile, prepared.load.peak_rate)


def assert_exact(prepared: PreparedSimulation) -> None:
    best = BruteForce(prepared, whole_ladder(prepared)).best()
    found = compute_hindsight(prepared)
    assert found.feasible == (best < float("inf"))
    if found.feasible:
        assert found.replica_hours * 3600 == pytest.approx(best)


@pytest.mark.parametrize("rules", RULES, ids=str)
@pytest.mark.parametrize("pipeline", [ONE, TWO], ids=["one", "two"])
def test_no_sequence_is_cheaper(rules: Rescaling, pipeline: SimulatedPipeline) -> None:
    for objective_s in (4.0, 24.0):
        assert_exact(case([8, 19, 3, 3, 11], rules, objective_s, pipeline))


@settings(max_examples=20)
@given(
    rates=st.lists(st.integers(0, 22), min_size=2, max_size=5),
    objective_s=st.integers(1, 40),
    rules=st.sampled_from(RULES),
)
def test_no_sequence_is_cheaper_for_any_small_load(
    rates: list[float], objective_s: int, rules: Rescaling
) -> None:
    assert_exact(case(rates, rules, objective_s))


def test_where_the_whole_job_stops_no_vector_beside_the_ladder_is_cheaper() -> None:
    prepared = case([8, 28, 12, 3], JOB, 24.0, TWO)
    everything = BruteForce(prepared, whole_ladder(prepared))
    everything.vectors = list(product(range(1, 4), repeat=2))
    assert compute_hindsight(prepared).replica_hours * 3600 == pytest.approx(everything.best())


def test_an_operator_with_a_long_pause_is_left_alone_while_others_change() -> None:
    rules = Rescaling(scope="operator", pause_s=1, pause_s_per_gb=60)
    prepared = case([55, 55, 8, 8, 8], rules, 20.0, TWO)
    found = compute_hindsight(prepared)
    assert len({replicas["map"] for _, replicas in found.sequence}) == 1
    assert {replicas["sink"] for _, replicas in found.sequence} == {1, 2}
    assert found.replica_hours * 3600 < BruteForce(prepared, whole_ladder(prepared)).best()


@pytest.mark.parametrize("rates", [[8, 8, 8, 19], [1, 11, 1, 14, 19], [19, 9, 9, 19, 3]])
def test_the_end_need_not_fall_on_a_tick(rates: list[float]) -> None:
    for rules, step_s in ((FREE, 14), (JOB, 13), (FREE, 12.2)):
        assert_exact(case(rates, rules, 8.0, step_s=step_s))


@pytest.mark.parametrize("rules", RULES, ids=str)
def test_speeds_during_a_change_are_those_of_the_engine(rules: Rescaling) -> None:
    prepared = case([40], rules, pipeline=TWO)
    ladder = whole_ladder(prepared)
    oracle, changes = BruteForce(prepared, ladder), Changes(ladder, rules)
    rates = changes.rates(oracle.hold * TICK_S)
    for i, before in enumerate(oracle.vectors):
        for j, after in enumerate(oracle.vectors):
            if i != j:
                assert rates[i % len(rates), j] == pytest.approx(oracle.speeds(before, after))


# --- the engine


def carry_out(prepared: PreparedSimulation, found: Hindsight) -> Iterator[Tick]:
    """Run the engine on the found sequence, second by second."""
    pipeline = prepared.pipeline.starting_with(found.sequence[0][1])
    engine = replace(prepared, pipeline=pipeline).engine()
    assert isinstance(engine, FluidEngine)
    delay_s = prepared.profile.rescaling.delay_s
    plans = {at_s - delay_s: replicas for at_s, replicas in found.sequence[1:]}
    for second in range(round(prepared.load.duration_s)):
        if second in plans:
            engine.apply(Plan(replicas=plans.pop(second)))
        engine.advance(1.0)
        yield Tick(at=second + 1.0, status=engine.status())
    assert not plans


@pytest.mark.parametrize(
    ("query", "engine", "mode"),
    [("q1", "flink", "operator"), ("q11", "flink", "operator"), ("q11", "flink", "reactive")],
)
def test_the_engine_meets_the_objective_at_that_cost(query: str, engine: str, mode: str) -> None:
    prepared = prepare_simulation(SimulationSpec(query=query, engine=engine, mode=mode, minutes=40))
    found = compute_hindsight(prepared)
    done = score(carry_out(prepared, found), found.objective_s)
    assert found.feasible and found.rescales > 3
    assert done.replica_hours == pytest.approx(found.replica_hours, rel=1e-3)
    assert done.latency_s.max == pytest.approx(found.latency_s, abs=2.0)
    assert done.slo.violated_share == 0
    assert done.dropped_records == 0


def test_where_queues_between_operators_are_unbounded_all_records_leave_in_time() -> None:
    prepared = prepare_simulation(SimulationSpec(engine=MICRO_BATCHES, minutes=30))
    found = compute_hindsight(prepared)
    pipeline = prepared.pipeline.starting_with(found.sequence[0][1])
    runs = replace(prepared, pipeline=pipeline).engine()
    assert isinstance(runs, FluidEngine)
    plans = dict(found.sequence[1:])
    offered = np.cumsum(prepared.load.counts())
    oldest = round(found.objective_s)
    for second in range(len(offered)):
        if replicas := plans.get(second + prepared.profile.rescaling.delay_s):
            runs.apply(Plan(replicas=replicas))
        runs.advance(1.0)
        # of every second, a handful may be cut off by whole numbers
        due = offered[second - oldest] if second >= oldest else 0
        assert runs.flows["sink"].processed >= due - 10
    assert found.rescales > 3


def test_no_queue_is_dropped_where_a_change_drops_queues() -> None:
    rules = Rescaling(scope="job", pause_s=10, drops_queues=True)
    prepared = case([50, 50, 500, 500, 30, 30, 30, 300, 300, 40, 40], rules, 30.0)
    found = compute_hindsight(prepared)
    assert found.rescales > 0
    assert score(carry_out(prepared, found)).dropped_records <= found.rescales


# --- what must always hold

LOADS = st.lists(st.integers(0, 300), min_size=1, max_size=12)
#: Where single operators stop, those that are kept depend on the objective.
ALL_OR_NOBODY = [rules for rules in RULES if rules.scope in ("job", "nobody")]


@settings(max_examples=15)
@given(rates=LOADS, objective_s=st.integers(1, 90), rules=st.sampled_from(RULES))
def test_never_more_expensive_than_static_peak(
    rates: list[float], objective_s: int, rules: Rescaling
) -> None:
    prepared = case(rates, rules, objective_s, TWO)
    peak = prepared.load.peak_rate
    static = sum(
        max(1, np.ceil(peak * TWO.visits()[op.name] / op.capacity_rate)) for op in TWO.operators
    )
    found = compute_hindsight(prepared)
    assert found.feasible
    assert found.replica_hours <= static * prepared.load.duration_s / 3600 + 1e-9


@settings(max_examples=15)
@given(rates=LOADS, objective_s=st.integers(1, 60), rules=st.sampled_from(ALL_OR_NOBODY))
def test_a_looser_objective_never_costs_more(
    rates: list[float], objective_s: int, rules: Rescaling
) -> None:
    costs = [
        compute_hindsight(case(rates, rules, objective_s * factor, TWO)).replica_hours
        for factor in (1, 1.5, 3)
    ]
    assert all(looser <= tighter + 1e-9 for tighter, looser in pairwise(costs))


@settings(max_examples=15)
@given(rates=LOADS, objective_s=st.integers(1, 60), rules=st.sampled_from(RULES))
def test_changes_for_free_never_cost_more(
    rates: list[float], objective_s: int, rules: Rescaling
) -> None:
    free = compute_hindsight(case(rates, FREE, objective_s, TWO))
    dear = compute_hindsight(case(rates, rules, objective_s, TWO))
    assert free.replica_hours <= dear.replica_hours + 1e-9


def test_a_pause_that_breaks_the_objective_leaves_the_best_fixed_number() -> None:
    rates = [50, 120, 80, 95, 20, 60]
    found = compute_hindsight(case(rates, Rescaling(scope="job", pause_s=31), 30.0))
    fixed = [k for k in range(1, 13) if keeps(k * 10.0, rates, oldest=29)]
    assert found.sequence == ((0.0, {"map": min(fixed)}),)
    assert min(fixed) < 12, "a short peak can wait"


def keeps(able: float, rates: list[float], oldest: int) -> bool:
    """Whether a fixed speed lets nobody wait for longer, one record cohort a second."""
    waiting, offered = 0.0, [rate for rate in rates for _ in range(TICK_S)]
    for second, rate in enumerate(offered):
        waiting = max(0.0, waiting + rate - able)
        if waiting > sum(offered[max(0, second + 1 - oldest) : second + 1]) + 1e-6:
            return False
    return True


def test_what_cannot_be_met_is_said_and_violated_least() -> None:
    found = compute_hindsight(case([10] * 4 + [90] * 4 + [10] * 20, FREE, 20.0, max_replicas=5))
    assert not found.feasible
    # 40 records/s too many for a minute are 2400: with 5 replicas the last ones wait for 48 s
    assert found.latency_s == pytest.approx(48, abs=1.2)
    assert max(replicas["map"] for _, replicas in found.sequence) == 5
    assert found.replica_hours < 5 * 28 * TICK_S / 3600


def test_an_objective_below_the_time_of_the_work_itself_cannot_be_met() -> None:
    found = compute_hindsight(case([10, 20], objective_s=0.05))
    assert not found.feasible
    assert found.latency_s == pytest.approx(0.1)


def test_records_are_not_left_until_the_topic_drops_them() -> None:
    rates = [50, 120, 80, 95, 20, 60]
    short = case(rates, JOB, 600.0, queues=Queues(retention_s=30.0))
    assert compute_hindsight(short).replica_hours == pytest.approx(
        compute_hindsight(case(rates, JOB, 30.1)).replica_hours
    )


def test_thousands_of_replicas_are_still_close_to_the_work_there_is() -> None:
    rates = (20_000 + 15_000 * np.cos(np.arange(80) / 8)).tolist()
    for rules in (JOB, replace(JOB, scope="operator")):
        prepared = case(rates, rules, 60.0)
        found = compute_hindsight(prepared)
        work_s = prepared.load.total_records / 10.0
        assert work_s * 0.97 < found.replica_hours * 3600 < work_s * 1.05


def test_a_run_without_an_objective_has_no_hindsight() -> None:
    with pytest.raises(InputError, match="objective_s: missing"):
        compute_hindsight(replace(case([1]), objective_s=None))


def test_engines_that_follow_records_are_said_to_be_taken_as_a_fluid() -> None:
    assert "single records" in compute_hindsight(case([5, 9], resolution="records")).approximations
    assert "micro-batches" in compute_hindsight(case([5, 9], resolution="batches")).approximations
    assert "single records" not in compute_hindsight(case([5, 9])).approximations


# --- the key


@pytest.mark.parametrize(
    "same", [{"policy": "dhalion"}, {"initial": 3}, {"guards": {"budget": 9}}, {"engine": "flink"}]
)
def test_what_makes_no_difference_keeps_the_key(same: dict[str, Any]) -> None:
    spec = SimulationSpec(engine="flink-fair")
    assert make_hindsight_key(prepare_simulation(replace(spec, **same))) == make_hindsight_key(
        prepare_simulation(spec)
    )


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 7},
        {"query": "q11"},
        {"minutes": 20},
        {"objective_s": 30.0},
        {"mode": "reactive"},
        {"profile": {"rescaling.pause_s": 1.0}},
    ],
)
def test_what_makes_a_difference_changes_the_key(other: dict[str, Any]) -> None:
    spec = SimulationSpec()
    assert make_hindsight_key(prepare_simulation(replace(spec, **other))) != make_hindsight_key(
        prepare_simulation(spec)
    )
