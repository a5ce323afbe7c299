"""Builds the simulated engine for a pipeline, a profile and a load."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from penstock.engines.port import Engine
from penstock.engines.simulator.fluid.engine import STEP_S, FluidEngine
from penstock.engines.simulator.hosts.engine import HostEngine
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Profile
from penstock.engines.simulator.records.engine import RecordEngine
from penstock.engines.simulator.records.model import RecordOperator, RecordPipeline, RecordRules
from penstock.engines.simulator.records.service import ServiceTime
from penstock.engines.simulator.records.simulation import RecordSimulator
from penstock.workloads.arrivals import arrival_times
from penstock.workloads.workload import Workload

if TYPE_CHECKING:
    from penstock.engines.simulator.batches.engine import BatchEngine

#: Seconds of load that are converted to counts at a time.
_BLOCK = 600


def build_engine(
    pipeline: SimulatedPipeline, profile: Profile, load: Workload, policy: str, seed: int
) -> Engine:
    """Build the engine at the resolution of the profile, with the monitor for the policy."""
    if profile.resolution == "records":
        return _records(pipeline, profile, load, seed)
    if profile.resolution == "hosts":
        return HostEngine(pipeline, profile, load, hosts=pipeline.hosts, seed=seed)
    if profile.resolution == "batches":
        sources = [op for op in pipeline.operators if not op.upstream]
        feeds = {op.topic: SourceFeed(load * op.share) for op in sources}
        return build_batches(_bounded(pipeline, profile, load), profile, feeds, seed)
    monitor = profile.monitor_of(policy)
    return FluidEngine(pipeline, profile, _offered(pipeline, load), monitor=monitor, seed=seed)


def _bounded(pipeline: SimulatedPipeline, profile: Profile, load: Workload) -> SimulatedPipeline:
    """Limit the queues between operators: on Spark, full queues cause back-pressure."""
    buffer_s = profile.batches.but(**pipeline.batches).buffer_s
    if buffer_s is None:
        return pipeline
    limit = max(1, round(load.peak_rate * buffer_s))
    operators = tuple(
        replace(op, queue_limit=limit) if op.upstream and op.queue_limit is None else op
        for op in pipeline.operators
    )
    return replace(pipeline, operators=operators)


class SourceFeed(NamedTuple):
    """Load of a source topic, and the distribution of its arrivals."""

    load: Workload
    arrivals: str = "deterministic"
    seed: int = 0


def build_batches(
    pipeline: SimulatedPipeline, profile: Profile, feeds: Mapping[str, SourceFeed], seed: int
) -> "BatchEngine":
    """Build a batch-level engine; `feeds` has the load of each source topic."""
    # imported here because it loads Arrow, which slows down the start of other runs
    from penstock.engines.simulator.batches.binned_topic import produced_rows  # noqa: PLC0415
    from penstock.engines.simulator.batches.engine import BatchEngine  # noqa: PLC0415
    from penstock.engines.simulator.batches.simulation import BatchSimulator  # noqa: PLC0415

    rules = profile.batches.but(**pipeline.batches)
    rows = {
        topic: produced_rows(feed.load, feed.arrivals, feed.seed, rules.write_s)
        for topic, feed in feeds.items()
    }
    return BatchEngine(
        BatchSimulator(pipeline, rules, profile.rescaling, rows, seed),
        batch_s=rules.batch_s,
        window_s=profile.monitor.window_s,
        max_replicas=profile.max_replicas,
    )


def _offered(pipeline: SimulatedPipeline, load: Workload) -> Mapping[str, Iterator[int]]:
    """Return the whole records of each second by source; the shares add up to the load."""
    sources = [op for op in pipeline.operators if not op.upstream]
    if len(sources) == 1 and sources[0].share == 1.0:
        return {sources[0].name: _counts(load)}
    return {op.name: _counts(load * op.share) for op in sources}


def _counts(load: Workload) -> Iterator[int]:
    """Yield the whole records of each second, computed in blocks to save memory."""
    seconds = round(load.duration_s / STEP_S)
    for first in range(0, seconds, _BLOCK):
        length_s = min(_BLOCK, seconds - first) * STEP_S
        yield from load.counts(length_s, STEP_S, begin_s=first * STEP_S).tolist()


def _records(
    pipeline: SimulatedPipeline, profile: Profile, load: Workload, seed: int
) -> RecordEngine:
    rescaling, queues = profile.rescaling, profile.queues
    restart_s = rescaling.pause_s if rescaling.scope == "job" else None
    rules = RecordRules(
        timeout_s=queues.timeout_s,
        interval_s=profile.loop.interval_s,
        startup_s=rescaling.delay_s,
        pause_s=rescaling.pause_s if rescaling.scope == "operator" else 0.0,
        restart_s=restart_s,
    )
    operators = tuple(_record_operator(op, profile) for op in pipeline.operators)
    times = {
        op.name: _times(load * op.share, queues.arrival_scv, seed + i)
        for i, op in enumerate(pipeline.operators)
        if not op.upstream
    }
    model = RecordPipeline(operators=operators, rules=rules)
    return RecordEngine(RecordSimulator(model, times, seed=seed))


def _record_operator(op: SimulatedOperator, profile: Profile) -> RecordOperator:
    return RecordOperator(
        name=op.name,
        upstream=op.upstream,
        service=ServiceTime(distribution=op.distribution, mean_s=1 / op.capacity_rate, scv=op.scv),
        replicas=op.replicas,
        max_replicas=op.max_replicas or profile.max_replicas,
        queue=profile.queues.queue,
        queue_size=profile.queues.queue_size,
        sent=op.sent,
    )


def _times(load: Workload, scv: float, seed: int) -> Iterator[float]:
    blocks = arrival_times(load, scv=scv, seed=seed)
    return chain.from_iterable(block.tolist() for block in blocks)
