"""Builds the snapshot of one operator from batch records and queue samples. Pure.

A micro-batch has a fixed part (planning, commit, waiting for the slowest task) in which replicas
cannot work. `busy` is therefore a share of the working time of full batches: a saturated operator
shows 1, and rate / busy is its true capacity.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from penstock.core.frozen_dict import FrozenDict
from penstock.core.histogram import GROWTH, SMALLEST_S, Histogram
from penstock.core.placement import useful_replicas
from penstock.core.snapshot import OperatorSnapshot
from penstock.core.trend import slope
from penstock.core.vote_count import VoteCount
from penstock.engines.microbatch.batch_overhead import compute_mean_factor, compute_slowest_factor
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.chain_members import measure_members
from penstock.engines.microbatch.full_batch import BEFORE_PLAN_S
from penstock.engines.microbatch.slice_usage import format_slices, measure_slices

#: The least number of chunks or bins for an estimate of variation.
_MIN_SAMPLES = 8
#: Width of the bins in which arrivals are counted.
_BIN_S = 0.5
#: Arrivals over a longer time than this say nothing about a window.
_MAX_ARRIVALS_S = 3600.0
#: Seconds of work of all slices below which the heaviest slice is a matter of chance.
_MIN_LOAD_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorWindow:
    """The measurements of one operator over a window."""

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
    #: Oldest first: the records of the window, and the last one before it.
    records: Sequence[BatchRecord]
    #: (wall clock, rows that wait).
    queues: Sequence[tuple[float, float]]
    #: Seconds of the window in which back-pressure kept it from reading; None without a limit.
    held_s: float | None = None
    #: Waiting rows above which upstream operators are held back; None without a limit.
    queue_limit: int | None = None
    #: Whether an ingest feeds it: the rhythm of its batches is not that of arrivals.
    is_ingested: bool = False
    #: What its replicas have decided themselves; None if a policy decides.
    votes: VoteCount | None = None


@dataclass(frozen=True, slots=True)
class _Span:
    """The batches that count, and the time that they cover."""

    records: Sequence[BatchRecord]
    seconds: float
    replicas: int
    tasks: Sequence[TaskRecord] = field(default_factory=tuple)


def build_operator_snapshot(window: OperatorWindow) -> OperatorSnapshot:
    """Return the snapshot; an unknown measure is None."""
    span = _select_span(window)
    queue = window.queues[-1][1] if window.queues else None
    full = None if queue is None or not window.queue_limit else min(1.0, queue / window.queue_limit)
    measures = (
        dict.fromkeys(("input_rate", "output_rate"))
        if span is None
        else _compute_measures(window, span)
    )
    return OperatorSnapshot(
        name=window.name,
        upstream=window.upstream,
        parallelism=window.running,
        min_parallelism=window.min_replicas if window.min_replicas > 1 else None,
        max_parallelism=window.max_replicas,
        requested=window.requested,
        queue=queue,
        input_buffer=full,
        queue_growth=_compute_queue_growth([q for q in window.queues if q[0] >= window.begin]),
        votes=window.votes,
        **measures,
    )


def _select_span(window: OperatorWindow) -> _Span | None:
    """Return the batches since the last change of replicas; None if no batch ever ran."""
    if not window.records:
        return None
    inside = [r for r in window.records if r.committed_at > window.begin]
    while inside and inside[0].replicas != window.running and inside[-1].replicas == window.running:
        inside = inside[1:]
    if not inside:
        return _Span((), window.now - window.begin, window.running)
    first = window.records.index(inside[0])
    begin = inside[0].planned_at - BEFORE_PLAN_S
    if first and window.records[first - 1].committed_at > window.begin - 2 * window.batch_s:
        begin = window.records[first - 1].committed_at
    usual_s = sum(r.committed_at - r.planned_at for r in inside) / len(inside)
    last = inside[-1].committed_at
    end = last if window.now - last < 2 * (usual_s + window.batch_s) else window.now
    tasks = tuple(task for record in inside for task in record.tasks)
    return _Span(inside, max(end - begin, 1e-3), inside[-1].replicas, tasks)


def _compute_measures(window: OperatorWindow, span: _Span) -> dict[str, object]:
    rows = sum(record.rows_in for record in span.records)
    held = (
        None if window.held_s is None else _compute_share(window.held_s, window.now - window.begin)
    )
    rates: dict[str, object] = {
        "input_rate": rows / span.seconds,
        "output_rate": sum(record.rows_out for record in span.records) / span.seconds,
        "backpressured": held,
    }
    if not rows:
        return rates | {"busy": 0.0, "idle": 1.0 - (held or 0.0), "cpu": 0.0}
    alone_s = sum(task.busy_s for task in span.tasks) / rows
    service_s = alone_s * compute_mean_factor(span.records, window.batch_s)
    busy = min(1.0, rows * service_s / (span.replicas * span.seconds))
    cpu = [task.cpu_s for task in span.tasks]
    loads = sum_slice_loads(span.tasks)
    known_cpu = sum(s for s in cpu if s is not None)
    return rates | {
        "busy": busy,
        "idle": max(0.0, 1.0 - busy - (held or 0.0)),
        "cpu": None if None in cpu else known_cpu / (span.replicas * span.seconds),
        "service_time_s": service_s,
        "service_scv": compute_service_scv(span.tasks),
        "arrival_scv": (
            None
            if window.is_ingested
            else compute_arrival_scv([record.events for record in span.records])
        ),
        # under low load, chance decides which slice is the heaviest
        "useful_parallelism": useful_replicas(loads) if sum(loads) > _MIN_LOAD_S else None,
        "extra": _build_extra(span, loads, window.batch_s),
    }


def _compute_share(seconds: float, of_s: float) -> float:
    """Return seconds as a share; a restarted source counts from 0, hence the bounds."""
    return min(1.0, max(0.0, seconds) / of_s)


def compute_service_scv(tasks: Sequence[TaskRecord]) -> float | None:
    """Return the variation of the service time of single records, from the times of chunks.

    If records are independent, the time of a chunk of n has n times the variance of one.
    """
    chunks = sum(task.chunks for task in tasks)
    rows = sum(task.rows_in for task in tasks)
    seconds = sum(task.busy_s for task in tasks)
    if chunks < _MIN_SAMPLES or not seconds:
        return None
    variance = (sum(task.squares for task in tasks) - seconds * seconds / rows) / (chunks - 1)
    return max(0.0, variance) / (seconds / rows) ** 2


def compute_arrival_scv(sketches: Sequence[Sequence[tuple[float, int]]]) -> float | None:
    """Return the variation of arrivals: variance over mean of counts in bins of due time."""
    times = np.array([second for events in sketches for second, _ in events])
    rows = np.array([count for events in sketches for _, count in events], dtype=float)
    if not len(times):
        return None
    if times.max() - times.min() > _MAX_ARRIVALS_S:  # event times from outside may be years apart
        return None
    bins = np.floor((times - times.min()) / _BIN_S).astype(int)
    counts = np.bincount(bins, weights=rows)[1:-1]  # the first and the last are not whole
    if len(counts) < _MIN_SAMPLES or not counts.mean():
        return None
    return float(counts.var(ddof=1) / counts.mean())


def _compute_queue_growth(queues: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the queue in rows/s; None for fewer than three samples."""
    return slope(queues) if len(queues) >= 3 else None


def build_latency(records: Sequence[BatchRecord]) -> Histogram:
    """Return the latency of rows: seconds from their due time to their commit here."""
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
    """Return the mean age of rows when a batch took them."""
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
    """Return the seconds of each slice of the state; empty without slices."""
    slices = 1 + max((number for task in tasks for number in task.slices), default=-1)
    loads = [0.0] * slices
    for task in tasks:
        for number, seconds in zip(task.slices, task.loads, strict=True):
            loads[number] += seconds
    return loads


def _build_extra(span: _Span, loads: Sequence[float], batch_s: float) -> Mapping[str, object]:
    """Return figures for people: batches, and the rate and load of each replica."""
    replicas = []
    for index in range(span.replicas):
        tasks = [r.tasks[index] for r in span.records if index < r.replicas]
        replicas.append(
            {
                "rate": round(sum(t.rows_in for t in tasks) / span.seconds, 3),
                "busy": round(min(1.0, sum(t.busy_s for t in tasks) / span.seconds), 3),
            }
        )
    latency = build_latency(span.records)
    times = [record.committed_at - record.planned_at for record in span.records]
    floors = [
        t - max(task.busy_s for task in r.tasks) for t, r in zip(times, span.records, strict=True)
    ]
    late = sum(task.late for task in span.tasks)
    sliced: dict[str, object] = {
        "slices": tuple(round(seconds / span.seconds, 4) for seconds in loads),
        "late": late,
        **format_slices(measure_slices(span.tasks, span.seconds), len(loads)),
        "overhead": round(compute_slowest_factor(span.records, batch_s), 4),
    }
    members = measure_members([task.members for task in span.tasks], span.seconds)
    return FrozenDict(
        {
            "batches": len(span.records),
            "batch_s": round(sum(times) / len(times), 4),
            "floor_s": round(max(0.0, sum(floors) / len(floors)), 4),
            "latency_p50_s": round(latency.percentile(50), 4) if latency.count else None,
            "latency_p95_s": round(latency.percentile(95), 4) if latency.count else None,
            "replicas": tuple(FrozenDict(replica) for replica in replicas),
            **(sliced if loads else {}),
            **({"members": members} if members else {}),
        }
    )
