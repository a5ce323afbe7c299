"""Hindsight: what a run would have cost at least, had the whole load been known beforehand.

The cheapest sequence of parallelisms that meets the latency objective in the run's engine,
rescale costs included: the bound that policies are measured against. It is found by dynamic
programming (`penstock.lab.hindsight_program`) on the fluid model, second by second: records
wait in one queue, a pause lets it grow, replicas that warm up drain it more slowly, and at no
second may a record wait that is older than the objective less what a record needs anyway.
Where it begins is free; what waits at the end must be young enough too.

What is approximated, all to the safe side: the sequence can be carried out, and the true
optimum may be a little cheaper.

- Changes take effect on a grid of 15 s or a multiple of it, and the next one comes only when
  the last one has settled. The delay of an engine costs nothing: one asks that much earlier.
- Nothing waits between operators: the pipeline is as fast as its slowest one, and stands still
  while one of them does.
- Only the vectors of the ladder (`penstock.lab.hindsight_ladder`) are considered, up to twice
  the peak. Where a change stops the whole job, no other vector could be cheaper; where it stops
  single operators, keeping one of them larger than needed could spare a pause.
- Of very many rungs or labels some are left out, and thousands of replicas are counted coarsely.

So the answer is an upper bound on the true optimum of a fluid engine. For engines that follow
single records the program is the same, and there it is no such bound but too cheap: a fluid
does not queue up by chance before replicas are fully used, knows no size of queues, and loses
nothing that is in service at a restart. Guards (budget, cool-down) bind policies, not hindsight.
"""

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

import numpy as np

from penstock.core.frozen import FrozenDict
from penstock.engines.simulator.fluid_engine import STEP_S
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Profile, Queues
from penstock.errors import InputError
from penstock.lab.hindsight_ladder import CATCH_UP_RUNGS, Changes, Ladder, build_ladder
from penstock.lab.hindsight_program import Course, Program, solve
from penstock.lab.simulation import Prepared

#: Goes into the key of kept answers: another number for another program.
VERSION = 1
#: Changes take effect at multiples of this, or of a multiple if there would be too many.
TICK_S = 15
MOST_TICKS = 280
#: Where it matters from which rung a change comes: the most rungs, and rungs^2 times seconds.
MOST_RUNGS_IF_UNLIKE = 48
MOST_DETAIL = 500_000


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


def hindsight(prepared: Prepared) -> Hindsight:
    """Return the cheapest course that meets the objective, or else the least violating one.

    The worst latency is least on the highest rung all the time: nothing ever waits less.
    So if that does not meet the objective, nothing does, and what is returned is the
    cheapest course with the same worst latency.
    """
    objective_s = prepared.objective_s
    if objective_s is None:
        hint = "give one, or take a pipeline that has one"
        raise InputError("objective_s", "missing: hindsight needs a latency objective", hint)
    ladder, program = _lay_out(prepared)
    anyway_s = latency_anyway_s(prepared.pipeline, prepared.profile.queues)
    oldest_s = _oldest_s(objective_s - anyway_s, prepared.profile.queues)
    course = solve(program.within(oldest_s)) if oldest_s >= 0 else None
    feasible = course is not None
    if course is None:
        highest = Course((0,), (len(program.rates) - 1,))
        course = solve(program.within(program.worst_age_s(highest)))
        assert course is not None, "the highest rung meets its own worst age"
    steps = zip(course.ticks, course.rungs, strict=True)
    return Hindsight(
        replica_hours=program.replica_s(course) / 3600,
        sequence=tuple(
            (float(tick * program.seconds), FrozenDict(ladder.named(rung))) for tick, rung in steps
        ),
        objective_s=objective_s,
        feasible=feasible,
        latency_s=anyway_s + program.worst_age_s(course),
        approximations=_approximations(prepared.profile, program),
    )


def latency_anyway_s(pipeline: SimulatedPipeline, queues: Queues) -> float:
    """Latency of a record that never waits, on the longest path."""
    longest_s: dict[str, float] = {}
    by_name = {op.name: op for op in pipeline.operators}
    for name in pipeline.topology.order:
        before_s = max((longest_s[up] for up in by_name[name].upstream), default=0.0)
        own_s = queues.hop_s + queues.batch_s + 1 / by_name[name].capacity_rate
        longest_s[name] = before_s + own_s
    return max(longest_s.values())


def hindsight_key(prepared: Prepared) -> str:
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
        "bounds": [profile.level, profile.max_replicas, prepared.objective_s],
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _oldest_s(spare_s: float, queues: Queues) -> int:
    """The oldest that a record may get while it waits: neither too late nor dropped."""
    bounds = (spare_s, queues.retention_s, queues.timeout_s)
    return math.floor(min(bound for bound in bounds if bound is not None) / STEP_S + 1e-9)


def _lay_out(prepared: Prepared) -> tuple[Ladder, Program]:
    """The ladder, and the program without limits."""
    load, rules = prepared.load, prepared.profile.rescaling
    steps = max(1, round(load.duration_s / STEP_S))
    tick_s = TICK_S * math.ceil(steps / (TICK_S * MOST_TICKS))
    ticks = math.ceil(steps / tick_s)
    offered = load.integrals(np.arange(steps + 1, dtype=np.float64) * STEP_S)
    arrivals = np.zeros(ticks * tick_s)
    arrivals[:steps] = np.diff(offered)
    changes = _changes(prepared, tick_s)
    hold = _hold(changes, tick_s)
    program = Program(
        arrivals=arrivals.reshape(ticks, tick_s),
        limits=np.full((ticks, tick_s), np.inf),
        rates=changes.ladder.rates,
        totals=changes.ladder.totals,
        # a change that takes longer than the run never happens
        during=changes.rates((hold if hold <= ticks else 1) * tick_s),
        hold=hold,
        first=max(1, math.ceil(rules.delay_s / tick_s)),
        empty_at_change=rules.drops_queues,
        beyond_s=ticks * tick_s - steps,
    )
    return changes.ladder, program


def _changes(prepared: Prepared, tick_s: int) -> Changes:
    """Changes along a ladder that is short enough to be climbed in time."""
    pipeline, profile = prepared.pipeline, prepared.profile
    ladder = build_ladder(pipeline, profile, prepared.load.peak_rate)
    changes = Changes(ladder, profile.rescaling)
    if changes.alike:
        return changes
    seconds = min(_hold(changes, tick_s) * tick_s, prepared.load.duration_s)
    most = min(MOST_RUNGS_IF_UNLIKE, math.isqrt(int(MOST_DETAIL / seconds)))
    if len(ladder.rates) <= most:
        return changes
    most = max(1, most - CATCH_UP_RUNGS)
    return Changes(build_ladder(pipeline, profile, prepared.load.peak_rate, most), changes.rules)


def _hold(changes: Changes, tick_s: int) -> int:
    """Ticks until a change has settled."""
    return max(1, math.ceil(changes.settle_s / tick_s - 1e-9))


def _approximations(profile: Profile, program: Program) -> str:
    text = (
        f"Fluid model, nothing waits between operators; {len(program.rates)} vectors of replicas; "
        f"changes every {program.seconds} s, each kept for {program.hold * program.seconds} s or "
        "longer: the true optimum may be a little cheaper."
    )
    if profile.level == "records":
        text += (
            " This engine follows single records: a fluid does not queue up by chance, so what "
            "meets the objective there costs more."
        )
    return text
