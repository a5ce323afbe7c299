"""One simulated run as a pure function of its spec."""

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

from penstock.control.decider import Decider
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.control.registry import find_policy
from penstock.runs.scores import Scores, rescales_possible
from penstock.core.frozen_dict import FrozenDict, freeze, thaw
from penstock.core.guards import Guards
from penstock.core.numbers import ceil
from penstock.engines.port import Engine
from penstock.engines.simulator.builder import build_engine
from penstock.engines.simulator.fluid.engine import STEP_S
from penstock.engines.simulator.library import load_pipeline, load_profile
from penstock.engines.simulator.model import SimulatedPipeline
from penstock.engines.simulator.profile import Profile, with_changes
from penstock.errors import InputError, nearest
from penstock.runs.spec_fields import check_field
from penstock.workloads.pattern import SEED
from penstock.workloads.registry import make_workload
from penstock.workloads.workload import Workload


_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSpec:
    """What is asked of one run. Everything that decides its outcome stands here."""

    query: str = "q1"
    workload: str = "cosine"
    policy: str = "ds2"
    engine: str = "flink"
    minutes: float | None = None
    seed: int = SEED
    params: Mapping[str, Any] = field(default_factory=FrozenDict)
    guards: Mapping[str, Any] = field(default_factory=FrozenDict)
    workload_params: Mapping[str, Any] = field(default_factory=FrozenDict)
    #: Changes of the engine's profile, such as {"monitor.busy_sees": 1.0}.
    profile: Mapping[str, Any] = field(default_factory=FrozenDict)
    #: Replicas at the start: a number for all operators, or by name.
    initial: Mapping[str, int] | int | None = None
    mode: str = "operator"
    objective_s: float | None = None
    interval_s: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries; what is at its default is left out."""
        data = {key: thaw(value) for key, value in asdict(self).items()}
        return {key: value for key, value in data.items() if value not in (None, {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "RunSpec":
        """Read what `to_json` wrote."""
        known = [item.name for item in fields(cls)]
        for name in data:
            if name not in known:
                raise InputError(name, "unknown field of a run", nearest(name, known))
            if name != "seed":
                check_field(name, data[name], name)
        if type(data.get("seed", 0)) is not int:
            raise InputError("seed", f"must be a whole number, got {data['seed']!r}")
        return cls(**freeze(data))


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSimulation:
    """A run made ready: everything loaded and checked, nothing begun."""

    spec: RunSpec
    load: Workload
    pipeline: SimulatedPipeline
    profile: Profile
    decider: Decider
    guards: Mapping[str, Any]
    schedule: LoopSchedule
    objective_s: float | None

    def engine(self) -> Engine:
        """Make the engine that runs it."""
        policy = self.decider.policy.name
        return build_engine(self.pipeline, self.profile, self.load, policy, self.spec.seed)

    def ticks(self) -> Iterator[Tick]:
        """Run it, with a decider that remembers nothing of an earlier run."""
        decider = Decider(self.decider.policy, self.decider.params, self.decider.guards)
        return run_loop(self.engine(), decider, self.schedule, tolerant=False)

    def header(self) -> dict[str, Any]:
        """What a journal says first: what was asked, and what every default came to."""
        return {
            "spec": self.spec.to_json(),
            "policy": self.decider.policy.name,
            "params": thaw(asdict(self.decider.params)),
            "guards": thaw(self.guards),
            "duration_s": self.schedule.duration_s,
            "interval_s": self.schedule.interval_s,
            "objective_s": self.objective_s,
        }

    def run(self, on_tick: Callable[[Tick], None] | None = None) -> dict[str, Any]:
        """Run it to its end and return its figures; `on_tick` sees every tick on the way."""
        spec = self.spec
        label = f"{spec.query} under {spec.workload}, {spec.policy} on {spec.engine}"
        _LOG.info("simulation starts: %s, seed %d", label, spec.seed)
        scores = Scores(self.objective_s)
        for tick in self.ticks():
            scores.add(tick)
            if on_tick is not None:
                on_tick(tick)
        _LOG.info("simulation finished: %s, seed %d", label, spec.seed)
        schedule = self.schedule
        possible = rescales_possible(schedule.duration_s, schedule.interval_s, self.guards)
        return {"spec": self.spec.to_json(), **scores.result(), "rescales_possible": possible}


def prepare_simulation(spec: RunSpec) -> PreparedSimulation:
    """Load and check everything that a run needs; `InputError` names what is wrong."""
    if spec.mode not in ("operator", "reactive"):
        raise InputError("mode", f"must be operator or reactive, got {spec.mode!r}")
    profile = with_changes(load_profile(spec.engine), spec.profile)
    # one that was measured on this very engine goes before one that ships
    pipeline = profile.pipelines.get(spec.query) or load_pipeline(spec.query)
    if spec.initial is not None:
        pipeline = pipeline.starting_with(spec.initial)
    if spec.mode == "reactive":
        pipeline = pipeline.as_one_job()
    load = make_workload(spec.workload, spec.minutes, spec.seed, dict(spec.workload_params))
    policy = find_policy(spec.policy)
    if policy.reads != "operators":
        raise InputError("policy", f"{policy.name} decides about hosts, which nothing here has")
    params = {**_default_params(policy.name, pipeline, load), **spec.params}
    guards = {**profile.guards_of(policy.name), **spec.guards}
    parsed = Guards.parse(guards, "guard")
    interval_s = profile.loop.interval_s if spec.interval_s is None else spec.interval_s
    _check_times(interval_s, spec.objective_s, profile)
    sleep_s = (parsed.cooldown_s or 0.0) if profile.loop.sleeps else 0.0
    return PreparedSimulation(
        spec=spec,
        load=load,
        pipeline=pipeline,
        profile=profile,
        decider=Decider(policy, policy.params.parse(params, f"parameter of {policy.name}"), parsed),
        guards={name: value for name, value in asdict(parsed).items() if value is not None},
        schedule=LoopSchedule(duration_s=load.duration_s, interval_s=interval_s, sleep_s=sleep_s),
        objective_s=spec.objective_s or pipeline.objective_s,
    )


def simulate(spec: RunSpec, on_tick: Callable[[Tick], None] | None = None) -> dict[str, Any]:
    """Run a spec and return its figures; `on_tick` sees every tick on the way."""
    return prepare_simulation(spec).run(on_tick)


def _check_times(interval_s: float, objective_s: float | None, profile: Profile) -> None:
    """Refuse times that no run can have."""
    if profile.level == "fluid" and (interval_s < 1 or interval_s % STEP_S):
        problem = f"must be whole seconds, at least 1, got {interval_s:g}"
        raise InputError("interval", problem, "the fluid simulator goes second by second")
    for name, value in (("interval", interval_s), ("objective", objective_s)):
        if value is not None and not 0 < value < math.inf:
            raise InputError(name, f"must be above 0 and finite, got {value:g}")


def _default_params(policy: str, pipeline: SimulatedPipeline, load: Workload) -> dict[str, Any]:
    """What only the laboratory knows: the peak, and what carries it, whatever a monitor shows."""
    if policy != "static-peak":
        return {}
    sources = [op for op in pipeline.operators if not op.upstream]
    visits = pipeline.visits()
    return {
        "peak_rate": {op.name: op.share * load.peak_rate for op in sources},
        "parallelism": {
            op.name: max(1, ceil(load.peak_rate * visits[op.name] / op.capacity_rate))
            for op in pipeline.operators
        },
    }
