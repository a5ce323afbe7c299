"""Builds snapshots and status from tracked batches. Pure; shared by Spark and a simulator."""

from collections.abc import Callable, Collection, Mapping

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import Snapshot
from penstock.core.topology import Topology
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_snapshot import (
    build_latency,
    build_operator_snapshot,
    compute_age_s,
)
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.port import Batch, Status
from penstock.errors import NotReadyError

#: Seconds between two updates of records and queues.
LOOK_S = 0.25


def build_snapshot(
    ops: Mapping[str, OperatorTracker], *, now: float, began: float, window_s: float, at: float
) -> Snapshot:
    """Return what was measured over the last window; `at` is the second of the run."""
    begin = max(began, now - window_s)
    sources = [operator for operator in ops.values() if operator.is_source]
    has_batches = any(
        operator.records and operator.records[-1].committed_at > began for operator in sources
    )
    if not has_batches and now - began < window_s:
        raise NotReadyError("no batch has been committed since this start")
    offered = {operator.name: measure_offered_rate(operator, begin) for operator in sources}
    return Snapshot(
        at=round(at, 3),
        offered=FrozenDict({name: rate for name, rate in offered.items() if rate is not None}),
        operators=FrozenDict(
            {
                name: build_operator_snapshot(operator.window(now, begin))
                for name, operator in ops.items()
            }
        ),
    )


def measure_offered_rate(operator: OperatorTracker, begin: float) -> float | None:
    """Return the rows/s that arrived since a time; None for a single sample.

    The backlog of an ingest may be an estimate that falls, so less may seem to have arrived.
    """
    samples = [sample for sample in operator.offers if sample[0] >= begin - LOOK_S]
    if len(samples) < 2:
        return None
    (start, before), (end, after) = samples[0], samples[-1]
    return max(0.0, after - before) / (end - start) if end > start else None


def build_status(
    ops: Mapping[str, OperatorTracker],
    topology: Topology,
    filled: Collection[str],
    *,
    at: float,
    second: Callable[[float], float],
) -> Status:
    """Return the status, with the batches since `clear_new`.

    `filled` are the topics that operators fill; `second` converts a time of the wall clock to
    the second of the run.
    """
    offered, taken = _sum_sources(ops, filled)
    sources = [operator for operator in ops.values() if operator.is_source]
    sinks = [operator for operator in ops.values() if not topology.downstream[operator.name]]
    latencies = {
        name_path(topology, operator.name): build_latency(operator.new_records)
        for operator in sinks
    }
    ages = [age for operator in sources if (age := compute_age_s(operator.new_records)) is not None]
    lost = sum(operator.rows_dropped for operator in ops.values())
    batches = {
        name: tuple(build_batch(record, second) for record in operator.new_records)
        for name, operator in ops.items()
        if operator.new_records
    }
    return Status(
        at=round(at, 3),
        requested=FrozenDict({name: operator.requested for name, operator in ops.items()}),
        running=FrozenDict({name: operator.running for name, operator in ops.items()}),
        latency=FrozenDict({path: times for path, times in latencies.items() if times.count}),
        age_s=sum(ages) / len(ages) if ages else None,
        replica_s=FrozenDict(
            {name: round(operator.replica_s, 3) for name, operator in ops.items()}
        ),
        batches=FrozenDict(batches),
        late=FrozenDict(
            {name: operator.rows_late for name, operator in ops.items() if operator.rows_late}
        ),
        offered_records=offered,
        processed_records=taken - lost,
        dropped_records=lost,
        backlog_records=offered - taken,
    )


def _sum_sources(ops: Mapping[str, OperatorTracker], filled: Collection[str]) -> tuple[int, int]:
    """Return the rows of topics which no operator fills, and those that all readers took."""
    ends: dict[str, int] = {}
    taken: dict[str, int] = {}
    for operator in ops.values():
        for name, topic in operator.topics.items():
            if name not in filled:
                ends[name] = topic.end
                taken[name] = min(operator.position[name], taken.get(name, topic.end))
    return sum(ends.values()), sum(taken.values())


def build_batch(record: BatchRecord, second: Callable[[float], float]) -> Batch:
    """Return a batch for the journal."""
    return Batch(
        planned_s=second(record.planned_at),
        committed_s=second(record.committed_at),
        replicas=record.replicas,
        rows_in=record.rows_in,
        rows_out=record.rows_out,
        busy_s=round(sum(task.busy_s for task in record.tasks), 4),
        longest_s=round(max((task.busy_s for task in record.tasks), default=0.0), 4),
        waiting=record.waiting,
    )


def name_path(topology: Topology, name: str) -> str:
    """Return the name of the path of records to an operator."""
    feeders = topology.upstream[name]
    if not feeders:
        return name
    if len(feeders) == 1:
        return f"{name_path(topology, feeders[0])} > {name}"
    return f"({' | '.join(feeders)}) > {name}"
