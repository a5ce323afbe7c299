"""Hindsight: what a run would have cost at least, had the whole load been known beforehand.

The cheapest sequence of parallelisms that meets the latency objective in the run's engine,
rescale costs included: the bound that policies are measured against. It is found by dynamic
programming (`penstock.lab.hindsight.program`) on the fluid model, second by second: records
wait in one queue, a pause lets it grow, replicas that warm up drain it more slowly, and at no
second may a record wait that is older than the objective less what a record needs anyway.
Where it begins is free; what waits at the end must be young enough too.

What is approximated, all to the safe side: the sequence can be carried out, and the true
optimum may be a little cheaper.

- Changes take effect on a grid of 15 s or a multiple of it, and the next one comes only when
  the last one has settled. The delay of an engine costs nothing: one asks that much earlier.
- Nothing waits between operators: the pipeline is as fast as its slowest one, and stands still
  while one of them does.
- Only the vectors of a ladder (`penstock.lab.hindsight.ladder`) are considered, up to twice the
  peak. Where a change stops the whole job, no other vector could be cheaper. Where it stops
  single operators, those with long pauses may also stay as the best fixed number has them; what
  lies between is not tried, so that in rare cases a looser objective costs a little more.
- Of very many rungs or labels some are left out, and thousands of replicas are counted coarsely.

So the answer is an upper bound on the true optimum of a fluid engine. For engines that follow
single records the program is the same, and there it is no such bound but too cheap: a fluid
does not queue up by chance before replicas are fully used, knows no size of queues, and loses
nothing that is in service at a restart. Guards (budget, cool-down) bind policies, not hindsight.
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

#: Goes into the key of kept answers: another number for another program.
VERSION = 1
#: Changes take effect at multiples of this, or of a multiple if there would be too many.
TICK_S = 15
MAX_TICKS = 280
#: Where it matters from which rung a change comes, fewer ticks; the most rungs, and rungs^2 times
#: the seconds of a change.
MAX_TICKS_BY_ORIGIN = 140
MAX_RUNGS_BY_ORIGIN = 64
MAX_DETAIL = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight:
    """The cheapest course of a run."""

    replica_hours: float
    #: From which second on how many replicas of each operator run; changes are asked for
    #: as much earlier as the engine's delay.
    sequence: tuple[tuple[float, Mapping[str, int]], ...]
    objective_s: float
    #: Whether the objective can be met at all; if not, this is the cheapest of those courses
    #: whose worst latency is least.
    feasible: bool
    #: The worst latency of any record, in the fluid model.
    latency_s: float
    approximations: str

    @property
    def rescales(self) -> int:
        """Changes after the start."""
        return len(self.sequence) - 1


def compare_cost(replica_hours: float, least: float, *, feasible: bool) -> HindsightCost:
    """Compare the cost of a run; no ratio where nothing at all could have met the objective."""
    return HindsightCost(
        replica_hours=float(f"{least:.6g}"),
        ratio=float(f"{replica_hours / least:.6g}") if feasible else None,
        feasible=feasible,
    )


def hindsight(prepared: PreparedSimulation) -> Hindsight:
    """Return the cheapest course that meets the objective, or else the least violating one.

    The worst latency is least on the highest rung all the time: nothing ever waits less.
    So if that does not meet the objective, nothing does, and what is returned is the
    cheapest course with the same worst latency.
    """
    objective_s = prepared.objective_s
    if objective_s is None:
        hint = "give one, or take a pipeline that has one"
        raise InputError("objective_s", "missing: hindsight needs a latency objective", hint)
    profile, load = prepared.profile, prepared.load
    ladder = build_ladder(prepared.pipeline, profile, load.peak_rate)
    whole = _build_program(load, Changes(ladder, profile.rescaling))
    anyway_s = min_latency_s(prepared.pipeline, profile.queues)
    wanted_s = _max_age_s(objective_s - anyway_s, profile.queues)
    least_s = whole.program.worst_age_s(float(ladder.rates[-1]))
    oldest_s = max(wanted_s, least_s)
    found, course = _find_cheapest(
        [whole, *_build_fixed_ladders(load, whole, ladder, oldest_s)], oldest_s
    )
    program = found.program
    return Hindsight(
        replica_hours=program.replica_s(course) / 3600,
        sequence=tuple(
            (float(tick * program.seconds), FrozenDict(found.changes.ladder.named(rung)))
            for tick, rung in zip(course.ticks, course.rungs, strict=True)
        ),
        objective_s=objective_s,
        feasible=least_s <= wanted_s,
        latency_s=anyway_s + program.worst_age_s(program.carried(course)),
        approximations=_approximations(profile, program),
    )


def min_latency_s(pipeline: SimulatedPipeline, queues: Queues) -> float:
    """Latency of a record that never waits, on the longest path."""
    longest_s: dict[str, float] = {}
    by_name = {op.name: op for op in pipeline.operators}
    for name in pipeline.topology.order:
        before_s = max((longest_s[up] for up in by_name[name].upstream), default=0.0)
        own_s = queues.hop_s + queues.batch_s + 1 / by_name[name].capacity_rate
        longest_s[name] = before_s + own_s
    return max(longest_s.values())


def make_hindsight_key(prepared: PreparedSimulation) -> str:
    """A name for the answer, the same for all runs that have the same one.

    It is made of the load, the pipeline, the profile and the objective; policies, guards,
    monitors and the replicas at the start make no difference.
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
    """The oldest that a record may get while it waits: neither too late nor dropped."""
    bounds = (spare_s, queues.retention_s, queues.timeout_s)
    return math.floor(min(bound for bound in bounds if bound is not None) / STEP_S + 1e-9)


class _LadderProgram(NamedTuple):
    """Changes along a ladder, and the program for them without limits."""

    changes: Changes
    program: Program


def _find_cheapest(
    ways: Sequence[_LadderProgram], oldest_s: int
) -> tuple[_LadderProgram, ReplicaPath]:
    """The cheapest course in which no record waits for longer."""
    solved = [
        (way, course) for way in ways if (course := solve(way.program.within(oldest_s))) is not None
    ]
    return min(solved, key=lambda each: each[0].program.replica_s(each[1]))


def _build_fixed_ladders(
    load: Workload, whole: _LadderProgram, ladder: Ladder, oldest_s: int
) -> list[_LadderProgram]:
    """Ladders on which operators with long pauses stay as the best fixed number has them."""
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
