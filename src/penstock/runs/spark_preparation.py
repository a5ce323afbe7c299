"""Prepares a run on Spark: loads and checks everything that can be checked before it starts."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from penstock.control.decider import Decider
from penstock.control.limits import call_within
from penstock.control.loop import LoopSchedule
from penstock.core.executors import ExecutorRules
from penstock.core.frozen_dict import FrozenDict
from penstock.core.guards import Guards
from penstock.core.policy import RunFacts
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.core.topology import Topology
from penstock.engines.spark.cluster.masters import Master, parse_executors, parse_master
from penstock.errors import InputError, nearest
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.build_args import BuiltPipeline, build_pipeline
from penstock.runs.journal_header import SPARK, JournalHeader, make_header
from penstock.runs.journal_parts import Limits
from penstock.runs.preparation import (
    PreparedRun,
    RunObjects,
    check_positive,
    find_operator_policy,
    parse_params,
)
from penstock.runs.spec import SparkSpec
from penstock.runs.time_scaling import check_speed_up, speed_up_params
from penstock.workloads.expression import parse
from penstock.workloads.registry import make_workload, natural_minutes
from penstock.workloads.workload import Workload

#: The workload by default.
WORKLOAD = "pulsar"
#: Time between decisions, and what a snapshot looks back on; both are sped up, up to a limit.
INTERVAL_S, MIN_INTERVAL_S = 15.0, 1.0
WINDOW_S, MIN_WINDOW_S = 60.0, 5.0
#: Default guards besides the bounds: scale up soon, scale down when the last change has had its
#: effect.
COOLDOWNS = FrozenDict(cooldown_up_s=15.0, cooldown_down_s=60.0)
#: Share of the objective that working off a queue may take when replicas are removed: the
#: objective is about single records, and most of them should meet it.
DRAIN_SHARE = 0.5
#: Time for which fewer executors must have been enough before some are returned; sped up, too,
#: but one takes a few seconds to begin.
RETURN_S, MIN_RETURN_S = 15.0, 5.0
#: Default time for which failures outside user code are retried if the run produces its rows;
#: other runs retry without limit.
RETRY_S = 300.0
#: Default length of a run with a workload, in minutes after the speed-up.
RUN_MINUTES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSparkRun(PreparedRun):
    """A run on Spark, loaded and checked, not yet started; its load is that of each fed topic."""

    spec: SparkSpec
    pipeline: Pipeline
    #: What it was built with.
    build_args: Mapping[str, Any]
    topology: Topology
    initial: Mapping[str, int]
    window_s: float
    #: Where it runs, and what executors keep to; None: one process with room for all replicas.
    master: Master | None = None
    executors: ExecutorRules | None = None
    #: How long failures that are not the user's are retried.
    retry_for_s: float = math.inf

    @property
    def workload(self) -> str:
        """The workload that producers follow; empty in production mode, where there are none."""
        return (self.spec.workload or WORKLOAD) if self.load is not None else ""

    def decider(self) -> Decider:
        """Return a decider without a past, which waits for no policy beyond its tick."""
        return Decider(self.policy, self.params, self.guards, call_within(self.interval_s))

    @property
    def shortest_cooldown_s(self) -> float | None:
        """The shortest pause after a change; None without any."""
        guards = self.guards
        pauses = (guards.cooldown_s, guards.cooldown_up_s, guards.cooldown_down_s)
        return min((pause_s for pause_s in pauses if pause_s), default=None)

    @property
    def most_replicas(self) -> int:
        """Replicas of all operators together at most; an ingest or egress keeps what it has."""
        operators = self.pipeline.operators.values()
        return sum(
            op.options.max_replicas if op.scales else op.options.replicas for op in operators
        )

    def header(self) -> JournalHeader:
        """Return the header of its journal: the spec and the resolved defaults."""
        return make_header(
            self.spec.to_json(),
            self.decider(),
            LoopSchedule(duration_s=self.duration_s, interval_s=self.interval_s),
            engine_kind=SPARK,
            objective_s=self.objective_s,
        )


def prepare_spark_run(
    spec: SparkSpec,
    objects: RunObjects = RunObjects(),  # noqa: B008  (immutable)
    slots: int | None = None,
) -> PreparedSparkRun:
    """Load and check everything that a run needs; `InputError` names what is wrong.

    `slots` is the number of tasks that an existing session runs at once.
    """
    faster = check_speed_up(spec.speed_up)
    pipeline, build_args, following = (
        BuiltPipeline(objects.pipeline, {})
        if objects.pipeline is not None
        else build_pipeline(spec.pipeline, spec.build_args)
    )
    topology = pipeline.check_scaled()
    master = parse_master(spec.master) if spec.master is not None else None
    executors = _executors(spec, master, pipeline)
    load = _load(spec, pipeline, objects.workload)
    if load is not None and following is not None:
        pipeline = following(load)
    objective_s = spec.objective_s or pipeline.objective_s
    _check_times(spec, objective_s)
    policy = find_operator_policy(spec.policy, objects.policy)
    defaults = policy.params_for(_run_facts(pipeline, load, objective_s))
    interval_s = _interval_s(spec)
    prepared = PreparedSparkRun(
        spec=spec,
        pipeline=pipeline,
        build_args=build_args,
        topology=topology,
        load=load,
        policy=policy,
        params=speed_up_params(parse_params(policy, defaults, spec.params), faster),
        guards=speed_up_params(
            Guards.parse(
                _guards(spec.guards, objective_s, _room(pipeline, executors, slots)), "guard"
            ),
            faster,
        ),
        initial=_initial(spec.initial, pipeline),
        interval_s=interval_s,
        window_s=max(WINDOW_S / faster, MIN_WINDOW_S, interval_s),
        duration_s=_duration_s(spec, load),
        objective_s=objective_s,
        master=master,
        executors=executors,
        retry_for_s=_retry_for_s(spec, load),
    )
    _ask_once(prepared)
    return prepared


def _load(spec: SparkSpec, pipeline: Pipeline, given: Workload | None) -> Workload | None:
    if not pipeline.feeds:
        _refuse_workload(spec, pipeline)
        return None
    name = spec.workload or WORKLOAD
    if given is not None:
        load = given
    else:
        own = natural_minutes(parse(name))
        minutes = spec.minutes or min(own, max(1, round(RUN_MINUTES * spec.speed_up)))
        load = make_workload(name, minutes, spec.seed, dict(spec.workload_params))
    try:
        return load.sped_up(spec.speed_up) * spec.rate_scale
    except InputError as wrong:
        raise InputError("--rate-scale", wrong.problem) from None


def _refuse_workload(spec: SparkSpec, pipeline: Pipeline) -> None:
    """In production mode rows come from outside, as many as there are."""
    given = {
        "--workload": spec.workload is not None,
        "--workload-param": bool(spec.workload_params),
        "--rate-scale": spec.rate_scale != 1,
    }
    for option, is_given in given.items():
        if is_given:
            hint = f"let a function make rows with @pipeline.produces, or leave {option} out"
            raise InputError(option, f"{pipeline.name} has no topic to fill", hint)


def _duration_s(spec: SparkSpec, load: Workload | None) -> float:
    if load is not None:
        return load.duration_s
    return spec.minutes * 60 / spec.speed_up if spec.minutes else math.inf


def _retry_for_s(spec: SparkSpec, load: Workload | None) -> float:
    if spec.retry_minutes is None:
        return math.inf if load is None else RETRY_S
    if not spec.retry_minutes >= 0:
        raise InputError("--retry-for", f"must be at least 0, got {spec.retry_minutes:g}")
    return spec.retry_minutes * 60


def _interval_s(spec: SparkSpec) -> float:
    if spec.interval_s is None:
        return max(INTERVAL_S / spec.speed_up, MIN_INTERVAL_S, spec.batch_s)
    interval_s = spec.interval_s / spec.speed_up
    if interval_s < spec.batch_s:
        problem = f"is {interval_s:g} s when sped up, which is shorter than a batch"
        raise InputError("--interval", problem, f"at least {spec.batch_s * spec.speed_up:g}")
    return interval_s


def _check_times(spec: SparkSpec, objective_s: float | None) -> None:
    times = {"--objective": objective_s, "--interval": spec.interval_s, "--batch": spec.batch_s}
    check_positive(times)
    Limits.of(spec.journal_mb)
    if spec.minutes is not None and not spec.minutes >= 1 / 60:
        raise InputError("--minutes", f"must be at least 1/60, a second, got {spec.minutes}")


def _executors(spec: SparkSpec, master: Master | None, pipeline: Pipeline) -> ExecutorRules | None:
    bounds = parse_executors(spec.executors, master)
    if master is None or bounds is None:
        return None
    delay_s = max(RETURN_S / spec.speed_up, MIN_RETURN_S)
    rules = ExecutorRules(low=bounds[0], high=bounds[1], cores=master.cores, delay_s=delay_s)
    operators = pipeline.operators.values()
    if rules.room < (least := sum(op.options.min_replicas for op in operators)):
        problem = f"there is room for {rules.room} replicas, {pipeline.name} needs {least}"
        raise InputError("--executors", problem, "more executors, or more cores for each")
    return rules


def _room(pipeline: Pipeline, executors: ExecutorRules | None, slots: int | None) -> int | None:
    """Return how many replicas run at once at most; None where there is room for all."""
    if slots is None:
        return executors.room if executors is not None else None
    least = sum(operator.options.min_replicas for operator in pipeline.operators.values())
    if slots < least:
        problem = f"runs {slots} tasks at once, {pipeline.name} needs {least}"
        raise InputError("spark", problem, f"start the session with master local[{least}] or more")
    return slots


def _guards(
    asked: Mapping[str, Any], objective_s: float | None, room_for: int | None
) -> Mapping[str, Any]:
    # replicas without room would only take turns
    room = {"budget": room_for} if room_for is not None else {}
    draining = {"hold_while_draining": DRAIN_SHARE * objective_s} if objective_s else {}
    is_told = any(name.startswith("cooldown") for name in asked)
    return {**room, **draining, **({} if is_told else COOLDOWNS), **asked}


def _initial(asked: Mapping[str, int] | int | None, pipeline: Pipeline) -> Mapping[str, int]:
    """Return the replicas of each operator at the start that differ from what it declares."""
    scaled = {name: op.options for name, op in pipeline.operators.items() if op.scales}
    if asked is None:
        return {}
    given = asked if isinstance(asked, Mapping) else dict.fromkeys(scaled, asked)
    for name, replicas in given.items():
        if name not in scaled:
            raise InputError("--initial", f"there is no operator {name!r}", nearest(name, scaled))
        least, most = scaled[name].min_replicas, scaled[name].max_replicas
        if not least <= replicas <= most:
            problem = f"{name} has from {least} to {most} replicas, got {replicas}"
            raise InputError("--initial", problem)
    return given


def _run_facts(pipeline: Pipeline, load: Workload | None, objective_s: float | None) -> RunFacts:
    if load is None:
        return RunFacts(objective_s=objective_s)
    shares = {
        op.name: sum(pipeline.feeds[topic].share for topic in op.reads if topic in pipeline.feeds)
        for op in pipeline.operators.values()
    }
    peaks = {name: share * load.peak_rate for name, share in shares.items() if share}
    return RunFacts(objective_s=objective_s, peak_rates=FrozenDict(peaks))


def _ask_once(prepared: PreparedSparkRun) -> None:
    """Ask the policy about a pipeline that shows nothing yet: some mistakes show only then."""
    declared = prepared.pipeline.operators
    operators = {
        name: OperatorSnapshot(
            name=name, upstream=feeders, parallelism=declared[name].options.replicas
        )
        for name, feeders in prepared.topology.upstream.items()
    }
    try:
        Decider(prepared.policy, prepared.params, prepared.guards).decide(
            Snapshot(at=0.0, operators=FrozenDict(operators))
        )
    except InputError:
        raise
    except Exception:  # a policy that needs measures; the loop records such an error
        return
