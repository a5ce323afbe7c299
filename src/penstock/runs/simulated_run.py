"""One simulated run as a pure function of its spec."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.core.frozen_dict import FrozenDict
from penstock.core.guards import Guards
from penstock.core.numbers import ceil
from penstock.core.policy import Policy, RunFacts
from penstock.engines.port import Engine
from penstock.engines.simulator.builder import build_engine
from penstock.engines.simulator.fluid.engine import STEP_S
from penstock.engines.simulator.library import load_profile
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.pipeline_choice import choose_pipeline
from penstock.engines.simulator.profile import Profile, with_changes
from penstock.errors import InputError
from penstock.runs.journal_header import JournalHeader, make_header
from penstock.runs.preparation import (
    PreparedRun,
    RunObjects,
    Scaled,
    check_positive,
    find_policy_for,
    parse_params,
)
from penstock.runs.result import RunResult
from penstock.runs.scores import Scores, rescales_possible
from penstock.runs.spec import SimulationSpec
from penstock.workloads.registry import make_workload
from penstock.workloads.workload import Workload

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSimulation(PreparedRun):
    """A simulated run, loaded and checked, not yet started."""

    spec: SimulationSpec
    load: Workload
    pipeline: SimulatedPipeline
    profile: Profile
    #: Time that the loop sleeps after a change.
    sleep_s: float = 0.0

    @property
    def schedule(self) -> LoopSchedule:
        """The ticks of the loop."""
        return LoopSchedule(
            duration_s=self.duration_s, interval_s=self.interval_s, sleep_s=self.sleep_s
        )

    def engine(self) -> Engine:
        """Build the engine that runs it."""
        return build_engine(
            self.pipeline, self.profile, self.load, self.policy.name, self.spec.seed
        )

    def ticks(self) -> Iterator[Tick]:
        """Run it with a new decider."""
        return run_loop(self.engine(), self.decider(), self.schedule, tolerant=False)

    def header(self) -> JournalHeader:
        """Return the header of its journal: the spec and the resolved defaults."""
        return make_header(
            self.spec.to_json(), self.decider(), self.schedule, objective_s=self.objective_s
        )

    def run(self, on_tick: Callable[[Tick], None] | None = None) -> RunResult:
        """Run it to its end; `on_tick` gets every tick on the way."""
        spec = self.spec
        label = f"{spec.query} under {spec.workload}, {spec.policy} on {spec.engine}"
        _LOG.info("simulation starts: %s, seed %d", label, spec.seed)
        scores = Scores(self.objective_s)
        for tick in self.ticks():
            scores.add(tick)
            if on_tick is not None:
                on_tick(tick)
        _LOG.info("simulation finished: %s, seed %d", label, spec.seed)
        possible = rescales_possible(self.duration_s, self.interval_s, self.guards)
        return RunResult(
            spec=self.spec.to_json(), scores=scores.result(), rescales_possible=possible
        )


def prepare_simulation(
    spec: SimulationSpec,
    objects: RunObjects = RunObjects(),  # noqa: B008  (immutable)
) -> PreparedSimulation:
    """Load and check everything that a run needs; `InputError` names what is wrong."""
    if spec.mode not in ("operator", "reactive"):
        raise InputError("mode", f"must be operator or reactive, got {spec.mode!r}")
    profile = with_changes(load_profile(spec.engine), spec.profile)
    load = objects.workload or make_workload(
        spec.workload, spec.minutes, spec.seed, dict(spec.workload_params)
    )
    pipeline = _pipeline(spec, profile, load)
    scaled: Scaled = "hosts" if profile.resolution == "hosts" else "operators"
    policy = find_policy_for(scaled, spec.policy, objects.policy)
    objective_s = spec.objective_s or pipeline.objective_s
    defaults = policy.params_for(_run_facts(policy, pipeline, load, objective_s))
    guards = Guards.parse({**profile.guards_of(policy.name), **spec.guards}, "guard")
    interval_s = profile.loop.interval_s if spec.interval_s is None else spec.interval_s
    _check_times(interval_s, spec.objective_s, profile)
    return PreparedSimulation(
        spec=spec,
        load=load,
        pipeline=pipeline,
        profile=profile,
        policy=policy,
        params=parse_params(policy, defaults, spec.params),
        guards=guards,
        interval_s=interval_s,
        duration_s=load.duration_s,
        sleep_s=(guards.cooldown_s or 0.0) if profile.loop.sleeps else 0.0,
        objective_s=objective_s,
    )


def _pipeline(spec: SimulationSpec, profile: Profile, load: Workload) -> SimulatedPipeline:
    pipeline = choose_pipeline(profile, spec.query, load)
    if profile.resolution == "hosts":
        if spec.mode != "operator":
            raise InputError("mode", f"{profile.name} has hosts: its slices move, nothing restarts")
        return pipeline if spec.initial is None else pipeline.starting_on(spec.initial)
    if spec.initial is not None:
        pipeline = pipeline.starting_with(spec.initial)
    return pipeline.as_one_job() if spec.mode == "reactive" else pipeline


def simulate(spec: SimulationSpec, on_tick: Callable[[Tick], None] | None = None) -> RunResult:
    """Run a spec; `on_tick` gets every tick on the way."""
    return prepare_simulation(spec).run(on_tick)


def _check_times(interval_s: float, objective_s: float | None, profile: Profile) -> None:
    """Refuse times that no run can have."""
    if profile.resolution == "fluid" and (interval_s < 1 or interval_s % STEP_S):
        problem = f"must be whole seconds, at least 1, got {interval_s:g}"
        raise InputError("interval", problem, "the fluid simulator goes second by second")
    check_positive({"interval": interval_s, "objective": objective_s})


def _run_facts(
    policy: Policy, pipeline: SimulatedPipeline, load: Workload, objective_s: float | None
) -> RunFacts:
    # only for policies that have an objective: the published experiments state what any other
    # policy gets of it as a parameter
    takes_objective = any(item.name == "objective_s" for item in policy.params.describe())
    visits = pipeline.visits()
    return RunFacts(
        objective_s=objective_s if takes_objective else None,
        peak_rates=FrozenDict(
            {op.name: op.share * load.peak_rate for op in pipeline.operators if not op.upstream}
        ),
        peak_replicas=FrozenDict(
            {
                op.name: max(1, ceil(load.peak_rate * visits[op.name] / op.capacity_rate))
                for op in pipeline.operators
            }
        ),
    )
