"""The twin of a run on Spark: the same load, policy and guards, simulated batch by batch.

The twin takes everything except the engine from the run: the workload with its seed, the policy
parameters and guards in its journal, the interval of the loop, and the end after the backlog.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from penstock.control.execution import Patience
from penstock.control.loop import LoopSchedule, Tick, run_loop
from penstock.core.frozen_dict import FrozenDict
from penstock.engines.simulator.batches.engine import BatchEngine
from penstock.engines.simulator.builder import SourceFeed, build_batches
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Profile
from penstock.engines.spark.operator_config import compute_min_interval_s
from penstock.errors import InputError
from penstock.runs.journal_header import SPARK, JournalHeader, decider_of, engine_kind
from penstock.runs.observer import ObservedEngine, StopCondition, StopRequest
from penstock.runs.run_directory import RunDirectory, read_run
from penstock.runs.spark_preparation import PreparedSparkRun, prepare_spark_run
from penstock.runs.spec import SparkSpec
from penstock.twin.calibration_runs import DeclaredOperator, read_operators


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A finished run on Spark, read from its directory and prepared again."""

    directory: Path
    run: RunDirectory
    spec: SparkSpec
    prepared: PreparedSparkRun
    #: Its operators as the run declared them.
    parts: Mapping[str, DeclaredOperator]

    @property
    def ticks(self) -> tuple[Tick, ...]:
        """The ticks of its journal."""
        return self.run.journal.ticks

    @property
    def header(self) -> JournalHeader:
        """The header of its journal, with all defaults resolved."""
        return self.run.journal.run


def read_recorded_run(directory: Path) -> RecordedRun:
    """Read a run on Spark; `InputError` if it cannot have a twin."""
    run = read_run(directory)
    where = str(directory)
    if engine_kind(run.journal.run) != SPARK:
        raise InputError("RUN", "is not a run on Spark", "penstock run makes such runs", where)
    if run.result is None:
        hint = f"resume it: penstock run --resume {directory}"
        raise InputError("RUN", "has not finished", hint, where)
    if not run.journal.ticks:
        raise InputError("RUN", "its journal has no ticks yet", where=where)
    if run.journal.begins_s:
        raise InputError("RUN", "the first part of its journal was removed", where=where)
    spec = SparkSpec.from_json(run.spec)
    if not spec.is_controlled:
        problem = "ran without a controller; simulated replicas do not decide alone"
        raise InputError("RUN", problem, where=where)
    prepared = prepare_spark_run(spec)
    if prepared.load is None:
        raise InputError("RUN", "its rows came from elsewhere, not from a workload", where=where)
    parts = read_operators(directory)
    return RecordedRun(directory=directory, run=run, spec=spec, prepared=prepared, parts=parts)


def simulate_twin(run: RecordedRun, profile: Profile, seed: int) -> Iterator[Tick]:
    """Simulate the twin to its end."""
    engine = build_twin_engine(run, profile, seed)
    condition = StopCondition(engine, engine, StopRequest(), clock=lambda: engine.at)
    return run_loop(
        ObservedEngine(engine, condition, lambda _: None, clock=lambda: engine.at),
        decider_of(run.header),
        LoopSchedule(duration_s=float("inf"), interval_s=run.header["interval_s"]),
        clock=lambda: engine.at,
        patience=Patience(),
        dry_run=run.spec.dry_run,
        stop=condition,
    )


def build_twin_engine(run: RecordedRun, profile: Profile, seed: int) -> BatchEngine:
    """Build the engine of a twin; `InputError` if the profile does not have the pipeline."""
    prepared, spec = run.prepared, run.spec
    assert prepared.load is not None
    feeds = {
        feed.topic: SourceFeed(prepared.load * feed.share, feed.arrivals, spec.seed + i)
        for i, feed in enumerate(prepared.pipeline.feeds.values())
    }
    adjusted = replace(profile, monitor=profile.monitor.but(window_s=prepared.window_s))
    return build_batches(_pipeline(run, profile), adjusted, feeds, seed)


def _pipeline(run: RecordedRun, profile: Profile) -> SimulatedPipeline:
    """Return the pipeline of the profile with the bounds and the replicas of the run."""
    name = run.prepared.pipeline.name
    # profiles of older versions name a pipeline by the path of its file
    known = profile.pipelines.get(name) or profile.pipelines.get(run.spec.pipeline)
    if known is None or profile.resolution != "batches":
        hint = "calibrate one from a run of it: penstock calibrate RUN -o FILE.toml"
        raise InputError("--profile", f"{profile.name} has no measured pipeline {name!r}", hint)
    if set(known.names) != set(run.parts):
        problem = f"{profile.name} has other operators for {name!r}: {', '.join(known.names)}"
        raise InputError("--profile", problem, "calibrate it anew")
    build_args = {key: str(value) for key, value in run.spec.build_args.items()}
    if build_args != known.build_args:
        measured, own = _describe(known.build_args), _describe(build_args)
        problem = f"{name} was measured with {measured}, the run has {own}"
        raise InputError("--profile", problem, "calibrate runs with the same --set values")
    initial = run.prepared.initial
    operators = tuple(_operator(op, run.parts[op.name], initial) for op in known.operators)
    timing = {"batch_s": run.spec.batch_s, "gap_s": compute_min_interval_s(run.spec.batch_s)}
    return replace(known, operators=operators, batches=FrozenDict({**known.batches, **timing}))


def _describe(build_args: Mapping[str, str]) -> str:
    return ", ".join(f"{key}={value}" for key, value in build_args.items()) or "the defaults"


def _operator(
    op: SimulatedOperator, part: DeclaredOperator, initial: Mapping[str, int]
) -> SimulatedOperator:
    return replace(
        op,
        replicas=initial.get(op.name, part.replicas),
        min_replicas=part.min_replicas,
        max_replicas=part.max_replicas,
        queue_limit=part.queue_limit,
    )
