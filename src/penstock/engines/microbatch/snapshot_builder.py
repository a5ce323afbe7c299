"""What is told of operators that are followed: a snapshot for policies, and how things stand. Pure.

A simulator that makes the records of batches by itself tells of them with the same words.
"""

from collections.abc import Callable, Collection, Mapping

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import Snapshot
from penstock.core.topology import Topology
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_snapshot import age_when_taken, latency, operator_snapshot
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.port import Batch, Status
from penstock.errors import NotReadyError

#: Seconds between two looks at records and queues.
LOOK_S = 0.25


def build_snapshot(
    ops: Mapping[str, OperatorTracker], *, now: float, began: float, window_s: float, at: float
) -> Snapshot:
    """Return what was measured over the last window; `at` is the second of the run."""
    begin = max(began, now - window_s)
    sources = [one for one in ops.values() if one.is_source]
    news = any(one.records and one.records[-1].committed_at > began for one in sources)
    if not news and now - began < window_s:
        raise NotReadyError("no batch has been committed yet")
    offered = {one.name: offered_rate(one, begin) for one in sources}
    return Snapshot(
        at=round(at, 3),
        offered=FrozenDict({name: rate for name, rate in offered.items() if rate is not None}),
        operators=FrozenDict(
            {name: operator_snapshot(one.sighting(now, begin)) for name, one in ops.items()}
        ),
    )


def offered_rate(one: OperatorTracker, begin: float) -> float | None:
    """Rows/s that came in since a time; None if it was looked at only once."""
    samples = [sample for sample in one.offers if sample[0] >= begin - LOOK_S]
    if len(samples) < 2:
        return None
    (start, before), (end, after) = samples[0], samples[-1]
    return (after - before) / (end - start) if end > start else None


def build_status(
    ops: Mapping[str, OperatorTracker],
    topology: Topology,
    filled: Collection[str],
    *,
    at: float,
    second: Callable[[float], float],
) -> Status:
    """Return how things stand, and the batches since the last call.

    `filled` are the topics that operators fill; `second` is the second of the run at a time of
    the wall clock.
    """
    offered, taken = _source_totals(ops, filled)
    sources = [one for one in ops.values() if one.is_source]
    sinks = [one for one in ops.values() if not topology.downstream[one.name]]
    seen = {path_of(topology, one.name): latency(one.fresh) for one in sinks}
    ages = [age for one in sources if (age := age_when_taken(one.fresh)) is not None]
    lost = sum(one.rows_dropped for one in ops.values())
    batches = {
        name: tuple(batch_of(record, second) for record in one.fresh)
        for name, one in ops.items()
        if one.fresh
    }
    for one in ops.values():
        one.fresh = []
    return Status(
        at=round(at, 3),
        requested=FrozenDict({name: one.requested for name, one in ops.items()}),
        running=FrozenDict({name: one.running for name, one in ops.items()}),
        latency=FrozenDict({path: times for path, times in seen.items() if times.count}),
        age_s=sum(ages) / len(ages) if ages else None,
        replica_s=FrozenDict({name: round(one.replica_s, 3) for name, one in ops.items()}),
        batches=FrozenDict(batches),
        late=FrozenDict({name: one.rows_late for name, one in ops.items() if one.rows_late}),
        offered_records=offered,
        processed_records=taken - lost,
        dropped_records=lost,
        backlog_records=offered - taken,
    )


def _source_totals(ops: Mapping[str, OperatorTracker], filled: Collection[str]) -> tuple[int, int]:
    """Rows that came to topics which no operator fills, and those that all readers took."""
    ends: dict[str, int] = {}
    taken: dict[str, int] = {}
    for one in ops.values():
        for name, topic in one.topics.items():
            if name not in filled:
                ends[name] = topic.end
                taken[name] = min(one.position[name], taken.get(name, topic.end))
    return sum(ends.values()), sum(taken.values())


def batch_of(record: BatchRecord, second: Callable[[float], float]) -> Batch:
    """Return a batch as the journal tells of it."""
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


def path_of(topology: Topology, name: str) -> str:
    """Name the way that records take to an operator."""
    feeders = topology.upstream[name]
    if not feeders:
        return name
    if len(feeders) == 1:
        return f"{path_of(topology, feeders[0])} > {name}"
    return f"({' | '.join(feeders)}) > {name}"
