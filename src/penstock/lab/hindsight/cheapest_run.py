"""Hindsight: the minimum cost of a run if the whole load were known in advance.

The result is the cheapest sequence of parallelisms that meets the latency objective in the
engine of the run, including the cost of rescales. Policies are compared with this bound. Dynamic
programming (`penstock.lab.hindsight.program`) finds it on the fluid model, second by second:
records wait in one queue, a pause lets the queue grow, replicas that warm up drain it more slowly.
At no second may a record wait that is older than the objective minus the minimum latency. The
first parallelism is free; the limit also applies to records that wait at the end.

All approximations are conservative: the sequence is feasible, and the true optimum may be a
little cheaper.

- Changes take effect on a grid of 15 s or a multiple of it, and the next change comes only after
  the last one has settled. The delay of an engine costs nothing, because changes are requested
  that much earlier.
- Nothing waits between operators: the pipeline is as fast as its slowest operator, and stops while
  one of them stops.
- Only the vectors of a ladder (`penstock.lab.hindsight.ladder`) are considered, up to twice the
  peak. If a change stops the whole job, no other vector is cheaper. If it stops single operators,
  those with long pauses may also keep the best fixed parallelism. Intermediate cases are not
  tried, so that in rare cases a looser objective costs a little more.
- If there are very many rungs or labels, some are left out; thousands of replicas are counted in
  coarser units.

So the result is an upper bound on the true optimum of a fluid engine. For engines that simulate
single records the program is the same, but its result is too cheap: a fluid does not queue by
chance before replicas are fully used, has no queue limits, and loses no records in service at a
restart. Guards (budget, cool-down) apply to policies, not to hindsight.
"""

import hashlib
import json
import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import NamedTuple

import numpy as np

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.simulator.fluid.engine import STEP_S
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Profile, Queues
from penstock.errors import InputError
from penstock.lab.hindsight.ladder import Changes, Ladder, build_ladder
from penstock.lab.hindsight.program import Program, ReplicaPath, solve
from penstock.runs.result import HindsightCost
from penstock.runs.simulated_run import PreparedSimulation
from penstock.workloads.workload import Workload

#: Part of the key of stored bounds; a changed program needs a new number.
VERSION = 1
#: Changes take effect at multiples of this; a multiple of it is used if there are too many ticks.
TICK_S = 15
MAX_TICKS = 280
#: Limits if the effect of a change depends on the rung before it: ticks, rungs, and rungs^2 times
#: the seconds of a change.
MAX_TICKS_BY_ORIGIN = 140
MAX_RUNGS_BY_ORIGIN = 64
MAX_DETAIL = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight:
    """The cheapest sequence of parallelisms for a run."""

    replica_hours: float
    #: Start second and replicas of each operator; changes are requested earlier, by the delay of
    #: the engine.
    sequence: tuple[tuple[float, Mapping[str, int]], ...]
    objective_s: float
    #: Whether the objective can be met; if not, this is the cheapest of the sequences with the
    #: lowest worst latency.
    feasible: bool
    #: The worst latency of any record, in the fluid model.
    latency_s: float
    approximations: str

    @property
    def rescales(self) -> int:
        """The number of changes after the start."""
        return len(self.sequence) - 1


def compare_cost(replica_hours: float, least: float, *, feasible: bool) -> HindsightCost:
    """Compare the cost of a run with the bound; without a ratio if the objective is infeasible."""
    return HindsightCost(
        replica_hours=float(f"{least:.6g}"),
        ratio=float(f"{replica_hours / least:.6g}") if feasible else None,
        feasible=feasible,
    )


def compute_hindsight(prepared: PreparedSimulation) -> Hindsight:
    """Return the cheapest sequence that meets the objective, or else the least violating one.

    The highest rung has the lowest worst latency. If it does not meet the objective, no sequence
    does, and the result is the cheapest sequence with the same worst latency.
    """
    objective_s = prepared.objective_s
    if objective_s is None:
        hint = "give one, or take a pipeline that has one"
        raise InputError("objective_s", "missing: hindsight needs a latency objective", hint)
    profile, load = prepared.profile, prepared.load
    if profile.resolution == "hosts":
        problem = f"is computed for replicas of operators, and {profile.name} scales hosts"
        raise InputError("hindsight", problem)
    ladder = build_ladder(prepared.pipeline, profile, load.peak_rate)
    whole = _build_program(load, Changes(ladder, profile.rescaling))
    base_latency_s = min_latency_s(prepared.pipeline, profile.queues)
    wanted_s = _max_age_s(objective_s - base_latency_s, profile.queues)
    least_s = whole.program.worst_age_s(float(ladder.rates[-1]))
    oldest_s = max(wanted_s, least_s)
    best, course = _find_cheapest(
        [whole, *_build_fixed_ladders(load, whole, ladder, oldest_s)], oldest_s
    )
    program = best.program
    return Hindsight(
        replica_hours=program.replica_s(course) / 3600,
        sequence=tuple(
            (float(tick * program.seconds), FrozenDict(best.changes.ladder.named(rung)))
            for tick, rung in zip(course.ticks, course.rungs, strict=True)
        ),
        objective_s=objective_s,
        feasible=least_s <= wanted_s,
        latency_s=base_latency_s + program.worst_age_s(program.carried(course)),
        approximations=_approximations(profile, program),
    )


def min_latency_s(pipeline: SimulatedPipeline, queues: Queues) -> float:
    """Return the latency of a record that never waits, on the longest path."""
    longest_s: dict[str, float] = {}
    by_name = {op.name: op for op in pipeline.operators}
    for name in pipeline.topology.order:
        before_s = max((longest_s[up] for up in by_name[name].upstream), default=0.0)
        own_s = queues.hop_s + queues.batch_s + 1 / by_name[name].capacity_rate
        longest_s[name] = before_s + own_s
    return max(longest_s.values())


def make_hindsight_key(prepared: PreparedSimulation) -> str:
    """Return a key that is equal for all runs with the same hindsight.

    It depends on the load, the pipeline, the profile and the objective, but not on policies,
    guards, monitors and the replicas at the start.
    """
    load, profile = prepared.load, prepared.profile
    operators = [asdict(op) for op in prepared.pipeline.operators]
    for operator in operators:
        del operator["replicas"]
    facts = {
        "version": VERSION,
        "load": [load.edges_s, load.starts, load.ends],
        "operators": operators,
        "rescaling": asdict(profile.rescaling),
        "queues": asdict(profile.queues),
        "bounds": [profile.resolution, profile.max_replicas, prepared.objective_s],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _max_age_s(spare_s: float, queues: Queues) -> int:
    """Return the maximum age of a waiting record that is neither too late nor dropped."""
    bounds = (spare_s, queues.retention_s, queues.timeout_s)
    return math.floor(min(bound for bound in bounds if bound is not None) / STEP_S + 1e-9)


class _LadderProgram(NamedTuple):
    """The changes along a ladder, and their program without limits."""

    changes: Changes
    program: Program


def _find_cheapest(
    ways: Sequence[_LadderProgram], oldest_s: int
) -> tuple[_LadderProgram, ReplicaPath]:
    """Return the cheapest path on which no record waits longer than `oldest_s`."""
    solved = [
        (way, course) for way in ways if (course := solve(way.program.within(oldest_s))) is not None
    ]
    return min(solved, key=lambda each: each[0].program.replica_s(each[1]))


def _build_fixed_ladders(
    load: Workload, whole: _LadderProgram, ladder: Ladder, oldest_s: int
) -> list[_LadderProgram]:
    """Return ladders on which operators with long pauses keep the best fixed parallelism."""
    rules, program = whole.changes.rules, whole.program
    best = bisect_left(
        ladder.rates, True, key=lambda rate: program.worst_age_s(float(rate)) <= oldest_s
    )
    return [
        _build_program(load, Changes(ladder.keeping(fixed, best), rules))
        for fixed in Changes(ladder, rules).worth_keeping()
    ]


def _build_program(load: Workload, changes: Changes) -> _LadderProgram:
    steps = max(1, round(load.duration_s / STEP_S))
    tick_s = TICK_S * math.ceil(steps / (TICK_S * MAX_TICKS))
    if not changes.alike and steps > tick_s * MAX_TICKS_BY_ORIGIN:
        tick_s *= 2
    ticks = math.ceil(steps / tick_s)
    arrivals = np.zeros(ticks * tick_s)
    arrivals[:steps] = np.diff(load.integrals(np.arange(steps + 1, dtype=np.float64) * STEP_S))
    hold = max(1, math.ceil(changes.settle_s / tick_s - 1e-9))
    # a change that takes longer than the run never happens
    seconds = (hold if hold <= ticks else 1) * tick_s
    if not changes.alike:
        most = min(MAX_RUNGS_BY_ORIGIN, math.isqrt(MAX_DETAIL // seconds))
        changes = Changes(changes.ladder.thinned(most), changes.rules)
    program = Program(
        arrivals=arrivals.reshape(ticks, tick_s),
        limits=np.full((ticks, tick_s), np.inf),
        rates=changes.ladder.rates,
        totals=changes.ladder.totals,
        during=changes.rates(seconds),
        hold=hold,
        first=max(1, math.ceil(changes.rules.delay_s / tick_s)),
        empty_at_change=changes.rules.drops_queues,
        beyond_s=ticks * tick_s - steps,
    )
    return _LadderProgram(changes, program)


def _approximations(profile: Profile, program: Program) -> str:
    text = (
        f"Fluid model, nothing waits between operators; {len(program.rates)} vectors of replicas; "
        f"changes every {program.seconds} s, each kept for {program.hold * program.seconds} s or "
        "longer: the true optimum may be a little cheaper."
    )
    if profile.resolution == "records":
        text += (
            " This engine follows single records: a fluid does not queue up by chance, so what "
            "meets the objective there costs more."
        )
    if profile.resolution == "batches":
        text += (
            " This engine works in micro-batches: a fluid has neither their overhead nor their "
            "length, so what meets the objective there costs more."
        )
    return text
