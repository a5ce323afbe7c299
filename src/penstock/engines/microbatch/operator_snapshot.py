"""Batch records and queue samples -> what a policy may know. Pure, and tested on recorded runs.

A micro-batch has a fixed part (planning, commit, waiting for the slowest task) in which
replicas cannot work. `busy` is therefore a share of the time that is there for work when batches
are as long as they shall be, so that an operator that cannot take more shows 1, and rates
divided by it are what replicas really carry.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from penstock.core.frozen_dict import FrozenDict
from penstock.core.histogram import GROWTH, SMALLEST_S, Histogram
from penstock.core.placement import useful_replicas
from penstock.core.snapshot import OperatorSnapshot
from penstock.core.trend import slope
from penstock.engines.microbatch.admission import count_full_rows
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord

#: Chunks or bins below which a variation would be guessed.
_FEW = 8
#: Width of the bins in which arrivals are counted.
_BIN_S = 0.5
#: Arrivals over a longer time than this tell nothing of a window.
_LONGEST_S = 3600.0
#: Seconds of work of all slices below which the heaviest of them is a matter of chance.
_MUCH_S = 0.5
#: What a batch takes before its plan is made, in seconds: the last one is logged, offsets are
#: asked. The least of what is seen counts; longer gaps are idle.
_BEFORE_PLAN_S = 0.15
_LONGEST_BEFORE_PLAN_S = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorWindow:
    """All that is known of one operator when it is looked at."""

    name: str
    upstream: tuple[str, ...]
    min_replicas: int = 1
    max_replicas: int
    requested: int
    running: int
    now: float
    #: Wall clock at the beginning of the window.
    begin: float
    batch_s: float
    #: Oldest first; those of the window, and the last one before it.
    records: Sequence[BatchRecord]
    #: (wall clock, rows that wait).
    queues: Sequence[tuple[float, float]]
    #: Seconds of the window in which back-pressure kept it from reading; None without a limit.
    held_s: float | None = None
    #: Rows that may wait before those who fill its queue are held; None for any number.
    queue_limit: int | None = None
    #: Rows come in the batches of an ingest, whose rhythm says nothing of how rows arrive there.
    is_ingested: bool = False


@dataclass(frozen=True, slots=True)
class _Span:
    """The batches that count, and the time that they stand for."""

    records: Sequence[BatchRecord]
    seconds: float
    replicas: int
    tasks: Sequence[TaskRecord] = field(default_factory=tuple)


def build_operator_snapshot(seen: OperatorWindow) -> OperatorSnapshot:
    """Translate; what cannot be known is None."""
    span = _select_span(seen)
    queue = seen.queues[-1][1] if seen.queues else None
    full = None if queue is None or not seen.queue_limit else min(1.0, queue / seen.queue_limit)
    measures = (
        dict.fromkeys(("input_rate", "output_rate"))
        if span is None
        else _compute_measures(seen, span)
    )
    return OperatorSnapshot(
        name=seen.name,
        upstream=seen.upstream,
        parallelism=seen.running,
        min_parallelism=seen.min_replicas if seen.min_replicas > 1 else None,
        max_parallelism=seen.max_replicas,
        requested=seen.requested,
        queue=queue,
        input_buffer=full,
        queue_growth=_compute_queue_growth([q for q in seen.queues if q[0] >= seen.begin]),
        **measures,
    )


def _select_span(seen: OperatorWindow) -> _Span | None:
    """Pick the batches since the last change of replicas; None if nothing ever ran."""
    if not seen.records:
        return None
    inside = [r for r in seen.records if r.committed_at > seen.begin]
    while inside and inside[0].replicas != seen.running and inside[-1].replicas == seen.running:
        inside = inside[1:]
    if not inside:
        return _Span((), seen.now - seen.begin, seen.running)
    first = seen.records.index(inside[0])
    begin = inside[0].planned_at - _BEFORE_PLAN_S
    if first and seen.records[first - 1].committed_at > seen.begin - 2 * seen.batch_s:
        begin = seen.records[first - 1].committed_at
    usual_s = sum(r.committed_at - r.planned_at for r in inside) / len(inside)
    last = inside[-1].committed_at
    end = last if seen.now - last < 2 * (usual_s + seen.batch_s) else seen.now
    tasks = tuple(task for record in inside for task in record.tasks)
    return _Span(inside, max(end - begin, 1e-3), inside[-1].replicas, tasks)


def _compute_measures(seen: OperatorWindow, span: _Span) -> dict[str, object]:
    rows = sum(record.rows_in for record in span.records)
    held = None if seen.held_s is None else _compute_share(seen.held_s, seen.now - seen.begin)
    found: dict[str, object] = {
        "input_rate": rows / span.seconds,
        "output_rate": sum(record.rows_out for record in span.records) / span.seconds,
        "backpressured": held,
    }
    if not rows:
        return found | {"busy": 0.0, "idle": 1.0 - (held or 0.0), "cpu": 0.0}
    alone_s = sum(task.busy_s for task in span.tasks) / rows
    service_s = alone_s * _compute_overhead_factor(seen, span, alone_s)
    busy = min(1.0, rows * service_s / (span.replicas * span.seconds))
    cpu = [task.cpu_s for task in span.tasks]
    loads = sum_slice_loads(span.tasks)
    known_cpu = sum(s for s in cpu if s is not None)
    return found | {
        "busy": busy,
        "idle": max(0.0, 1.0 - busy - (held or 0.0)),
        "cpu": None if None in cpu else known_cpu / (span.replicas * span.seconds),
        "service_time_s": service_s,
        "service_scv": compute_service_scv(span.tasks),
        "arrival_scv": (
            None
            if seen.is_ingested
            else compute_arrival_scv([record.events for record in span.records])
        ),
        # without much to do, chance decides which slice is the heaviest
        "useful_parallelism": useful_replicas(loads) if sum(loads) > _MUCH_S else None,
        "extra": _build_extra(span, loads),
    }


def _compute_share(seconds: float, of_s: float) -> float:
    """Seconds as a share; a source that was started again counts from the beginning."""
    return min(1.0, max(0.0, seconds) / of_s)


def _compute_overhead_factor(seen: OperatorWindow, span: _Span, alone_s: float) -> float:
    """How much longer a record takes than its function does, in full batches."""
    lost = [r.committed_at - r.planned_at - compute_mean_busy_s(r) for r in span.records]
    gaps = [b.planned_at - a.committed_at for a, b in pairwise(span.records)]
    between_s = min([*gaps, _LONGEST_BEFORE_PLAN_S]) if gaps else _BEFORE_PLAN_S
    return 1 + max(0.0, sum(lost) / len(lost) + between_s) / _compute_full_s(seen, span, alone_s)


def _compute_full_s(seen: OperatorWindow, span: _Span, alone_s: float) -> float:
    """Seconds that a replica works in a full batch: rows that take long do not fill it to the end.

    A batch is as long as its slowest task, which is what the number of its rows goes by.
    """
    longest_s = sum(max(task.busy_s for task in r.tasks) for r in span.records if r.rows_in)
    rows = sum(r.rows_in / min(r.rows_in, r.replicas) for r in span.records if r.rows_in)
    return count_full_rows(rows / max(longest_s, 1e-9), seen.batch_s) * alone_s


def compute_mean_busy_s(record: BatchRecord) -> float:
    """Seconds that a replica worked in a batch, on average."""
    return sum(task.busy_s for task in record.tasks) / max(1, record.replicas)


def compute_service_scv(tasks: Sequence[TaskRecord]) -> float | None:
    """Variation of the service time of single records, from the times of chunks of them.

    If records are independent, the time of a chunk of n has n times the variance of one.
    """
    chunks = sum(task.chunks for task in tasks)
    rows = sum(task.rows_in for task in tasks)
    seconds = sum(task.busy_s for task in tasks)
    if chunks < _FEW or not seconds:
        return None
    variance = (sum(task.squares for task in tasks) - seconds * seconds / rows) / (chunks - 1)
    return max(0.0, variance) / (seconds / rows) ** 2


def compute_arrival_scv(sketches: Sequence[Sequence[tuple[float, int]]]) -> float | None:
    """Variation of arrivals: variance over mean of counts in equal bins of due time."""
    times = np.array([second for events in sketches for second, _ in events])
    rows = np.array([count for events in sketches for _, count in events], dtype=float)
    if not len(times):
        return None
    if times.max() - times.min() > _LONGEST_S:  # event times that somebody named may be years apart
        return None
    bins = np.floor((times - times.min()) / _BIN_S).astype(int)
    counts = np.bincount(bins, weights=rows)[1:-1]  # the first and the last are not whole
    if len(counts) < _FEW or not counts.mean():
        return None
    return float(counts.var(ddof=1) / counts.mean())


def _compute_queue_growth(queues: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the queue in rows/s; None for fewer than three samples."""
    return slope(queues) if len(queues) >= 3 else None


def build_latency(records: Sequence[BatchRecord]) -> Histogram:
    """Seconds from when rows were due at their producer until they were committed here."""
    parts = [np.array(record.events, dtype=float) for record in records if record.events]
    if not parts:
        return Histogram()
    commits = [record.committed_at for record in records if record.events]
    ages_s = [at - part[:, 0] for at, part in zip(commits, parts, strict=True)]
    rows = np.concatenate([part[:, 1] for part in parts])
    return _build_histogram(np.maximum(0.0, np.concatenate(ages_s)), rows)


def _build_histogram(latencies_s: NDArray[np.float64], rows: NDArray[np.float64]) -> Histogram:
    """Build a histogram at once: a simulated run counts millions of bins."""
    scaled = np.maximum(1.0, latencies_s / SMALLEST_S)
    counts = np.bincount(np.ceil(np.log(scaled) / math.log(GROWTH)).astype(int), weights=rows)
    buckets = np.flatnonzero(counts)
    by_bucket = dict(zip(buckets.tolist(), counts[buckets].tolist(), strict=True))
    return Histogram(
        by_bucket, float(rows.sum()), float(latencies_s @ rows), float(latencies_s.max())
    )


def compute_age_s(records: Sequence[BatchRecord]) -> float | None:
    """Mean age of rows when a batch took them."""
    rows = sum(count for record in records for _, count in record.events)
    if not rows:
        return None
    total = sum(
        (record.planned_at - second) * count
        for record in records
        for second, count in record.events
    )
    return max(0.0, total / rows)


def sum_slice_loads(tasks: Sequence[TaskRecord]) -> list[float]:
    """Seconds that each slice of the state took; empty for an operator without any."""
    slices = 1 + max((number for task in tasks for number in task.slices), default=-1)
    loads = [0.0] * slices
    for task in tasks:
        for number, seconds in zip(task.slices, task.loads, strict=True):
            loads[number] += seconds
    return loads


def _build_extra(span: _Span, loads: Sequence[float]) -> Mapping[str, object]:
    """Figures for people: batches, and what each replica did."""
    each = []
    for index in range(span.replicas):
        tasks = [r.tasks[index] for r in span.records if index < r.replicas]
        each.append(
            {
                "rate": round(sum(t.rows_in for t in tasks) / span.seconds, 3),
                "busy": round(min(1.0, sum(t.busy_s for t in tasks) / span.seconds), 3),
            }
        )
    seen = build_latency(span.records)
    times = [record.committed_at - record.planned_at for record in span.records]
    floors = [
        t - max(task.busy_s for task in r.tasks) for t, r in zip(times, span.records, strict=True)
    ]
    late = sum(task.late for task in span.tasks)
    sliced: dict[str, object] = {
        "slices": tuple(round(seconds / span.seconds, 4) for seconds in loads),
        "late": late,
    }
    return FrozenDict(
        {
            "batches": len(span.records),
            "batch_s": round(sum(times) / len(times), 4),
            "floor_s": round(max(0.0, sum(floors) / len(floors)), 4),
            "latency_p50_s": round(seen.percentile(50), 4) if seen.count else None,
            "latency_p95_s": round(seen.percentile(95), 4) if seen.count else None,
            "replicas": tuple(FrozenDict(replica) for replica in each),
            **(sliced if loads else {}),
        }
    )
