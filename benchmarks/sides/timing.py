"""How long calls, queries and batches take on a shared machine."""

import gc
import resource
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from penstock.engines.microbatch.batch_record import BatchRecord


def fastest_s(
    call: Callable[[], object],
    *,
    min_s: float = 0.0,
    min_calls: int = 1,
    clock: Callable[[], float] = time.perf_counter,
) -> float:
    """Return the time of the fastest call, the one least disturbed by other processes.

    Calls are repeated for `min_s` seconds and at least `min_calls` times.
    """
    times_s: list[float] = []
    end_s = time.perf_counter() + min_s
    gc.collect()
    while time.perf_counter() < end_s or len(times_s) < min_calls:
        start_s = clock()
        call()
        times_s.append(clock() - start_s)
    return min(times_s)


def processor_s() -> float:
    """Return the processor time of this process and of its finished children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def query_rows_per_s(query: Any, batches: int, max_s: float = float("inf")) -> float:
    """Return the rows per second of a running query after its first two batches, and stop it."""
    progress: dict[int, Any] = {}
    deadline = time.monotonic() + max_s
    while len(progress) < batches and time.monotonic() < deadline:
        time.sleep(0.1)
        progress |= {p["batchId"]: p for p in query.recentProgress if p["batchId"] >= 2}
        if query.exception():
            raise RuntimeError(query.exception())
    query.stop()
    seconds = sum(p["durationMs"]["triggerExecution"] for p in progress.values()) / 1000
    return float(sum(p["numInputRows"] for p in progress.values()) / seconds)


def commit_gaps(records: Sequence[BatchRecord]) -> tuple[list[float], float]:
    """Return the gaps between commits around changes of k, and the median of all other gaps."""
    steady = records[3:]  # the first batches are small: nothing had been measured
    around, others = [], []
    for before, here in pairwise(steady):
        gap = here.committed_at - before.committed_at
        (around if before.replicas != here.replicas else others).append(gap)
    return around, statistics.median(others)


def show_step(text: str) -> None:
    """Print what is measured now, beside the table on standard output."""
    print(f"  {text}", file=sys.stderr, flush=True)
