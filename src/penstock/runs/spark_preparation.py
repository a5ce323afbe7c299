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
from penstock.core.policy import Policy, RunFacts
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.core.topology import Topology
from penstock.engines.microbatch.host_snapshot import build_hosts
from penstock.engines.microbatch.host_table import HostTable
from penstock.engines.microbatch.replica_vote import VotingRules
from penstock.engines.spark.cluster.masters import Master, parse_master
from penstock.errors import InputError
from penstock.pipelines.chained_pipeline import join_chains
from penstock.pipelines.host_declaration import count_slices
from penstock.pipelines.pipeline import Pipeline
from penstock.runs.build_args import BuiltPipeline, build_pipeline
from penstock.runs.controller_choice import check_controller, make_voting_rules
from penstock.runs.journal_header import SPARK, JournalHeader, make_header
from penstock.runs.journal_parts import Limits
from penstock.runs.preparation import (
    PreparedRun,
    RunObjects,
    Scaled,
    check_positive,
    find_policy_for,
    parse_params,
)
from penstock.runs.replica_limits import choose_executors, choose_initial, count_room
from penstock.runs.spec import CHAIN_ON, SparkSpec
from penstock.runs.time_scaling import check_speed_up, speed_up_params
from penstock.topics.kafka.cluster import make_cluster
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
        """Return a decider without a past, which waits for no policy beyond its tick.

        Without a controller it reports what replicas decided, which no guard can change.
        """
        guards = self.guards if self.spec.is_controlled else None
        return Decider(self.policy, self.params, guards, call_within(self.interval_s))

    @property
    def voting(self) -> Mapping[str, VotingRules]:
        """How the replicas of each operator decide alone; empty if the loop decides."""
        if self.spec.is_controlled:
            return {}
        drain_s = DRAIN_SHARE * self.objective_s if self.objective_s else self.window_s
        return make_voting_rules(self.spec, self.pipeline, self.params, self.interval_s, drain_s)

    @property
    def most_replicas(self) -> int:
        """Replicas of all operators together at most; an ingest or egress keeps what it has."""
        options = ((op.scales, op.options) for op in self.pipeline.operators.values())
        return sum(o.max_replicas if scales else o.replicas for scales, o in options)

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
    pipeline = _place(pipeline, spec)
    topology = pipeline.check_scaled()
    master = _read_master(spec)
    executors = choose_executors(spec, master, pipeline)
    load = _load(spec, pipeline, objects.workload)
    if load is not None and following is not None:
        pipeline = _place(following(load), spec)
    objective_s = spec.objective_s or pipeline.objective_s
    _check_times(spec, objective_s)
    scaled: Scaled = "hosts" if pipeline.hosts else "operators"
    policy = find_policy_for(scaled, spec.policy, objects.policy)
    defaults = policy.params_for(_run_facts(pipeline, load, objective_s))
    interval_s = _interval_s(spec)
    room = count_room(pipeline, executors, slots)
    check_controller(spec, pipeline, room)
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
                # other guards are about replicas of operators
                spec.guards if pipeline.hosts else _guards(spec, objective_s, room),
                "guard",
            ),
            faster,
        ),
        initial=choose_initial(spec.initial, pipeline),
        interval_s=interval_s,
        window_s=_choose_window_s(policy, interval_s, faster),
        duration_s=_duration_s(spec, load),
        objective_s=objective_s,
        master=master,
        executors=executors,
        retry_for_s=_retry_for_s(spec, load),
    )
    _ask_once(prepared)
    return prepared


def _place(pipeline: Pipeline, spec: SparkSpec) -> Pipeline:
    """Return the pipeline with the topics and the chains that the spec asks for."""
    cluster = make_cluster(spec.topics, spec.topics_properties, "--topics")
    pipeline = pipeline if cluster is None else pipeline.with_cluster(cluster)
    return join_chains(pipeline) if spec.chain == CHAIN_ON else pipeline


def _read_master(spec: SparkSpec) -> Master | None:
    settings = {key: str(value) for key, value in spec.conf.items()}
    if spec.master is not None:
        return parse_master(spec.master, settings)
    if settings:
        raise InputError("--conf", "needs a cluster", "add --master spark://HOST:PORT")
    return None


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


def _choose_window_s(policy: Policy, interval_s: float, faster: float) -> float:
    """Return what a snapshot looks back on.

    The rules of a policy for hosts must be broken for some time before they act. A long window
    would delay them a second time: hosts would stay for a minute after their load has gone.
    """
    usual_s = 0.0 if policy.reads == "hosts" else WINDOW_S / faster
    return max(usual_s, MIN_WINDOW_S, interval_s)


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
    if spec.overhead_share is not None and not 0 < spec.overhead_share <= 1:
        problem = f"must be above 0 and at most 1, got {spec.overhead_share:g}"
        raise InputError("--overhead-share", problem, "such as 0.2")
    if spec.minutes is not None and not spec.minutes >= 1 / 60:
        raise InputError("--minutes", f"must be at least 1/60, a second, got {spec.minutes}")


def _guards(spec: SparkSpec, objective_s: float | None, room_for: int | None) -> Mapping[str, Any]:
    if not spec.is_controlled:  # nobody sees all replicas; each operator keeps its bounds
        return {}
    guards = spec.guards
    # replicas without room would only take turns
    room = {"budget": room_for} if room_for is not None else {}
    draining = {"hold_while_draining": DRAIN_SHARE * objective_s} if objective_s else {}
    is_told = any(name.startswith("cooldown") for name in guards)
    return {**room, **draining, **({} if is_told else COOLDOWNS), **guards}


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
    hosts = prepared.pipeline.hosts
    table = HostTable.spread(count_slices(prepared.pipeline), hosts.start) if hosts else None
    try:
        Decider(prepared.policy, prepared.params, prepared.guards).decide(
            Snapshot(
                at=0.0,
                operators=FrozenDict(operators),
                hosts=build_hosts(table, operators, {}) if table else FrozenDict(),
            )
        )
    except InputError:
        raise
    except Exception:  # a policy that needs measures; the loop records such an error
        return
