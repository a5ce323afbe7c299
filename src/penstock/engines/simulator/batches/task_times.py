"""The model of task times in a batch; the caller passes the random generator.

Rows are assigned as on Spark: evenly in contiguous ranges, or by the slice of their key. Times of
single rows vary independently, so n rows have n times the variance of one.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.microbatch.dealing import compute_cuts
from penstock.engines.simulator.batches.model import Costs
from penstock.workloads.piecewise import FloatArray

#: Above this number, counts per slice are drawn at once instead of a slice per row.
_MAX_DRAWS = 10_000


def lognormal(draw: Generator, sigma: float) -> float:
    """Draw a lognormal factor of mean 1."""
    return float(np.exp(sigma * draw.standard_normal() - sigma * sigma / 2)) if sigma else 1.0


def times_of(rows: NDArray[np.int64], row_s: float, scv: float, draw: Generator) -> FloatArray:
    """Draw the total time of each group of rows."""
    if not scv or not row_s:
        return rows.astype(np.float64) * row_s
    # a sum of gamma variables is a gamma variable whose shape is the sum of the shapes
    return np.where(rows > 0, draw.gamma(np.maximum(rows, 1) / scv, scv * row_s), 0.0)


def even_tasks(
    costs: Costs, scv: float, commits: Sequence[int], speeds: Sequence[float], draw: Generator
) -> list[TaskRecord]:
    """Assign the rows of commits evenly, one task per speed (1: full), and draw their times."""
    replicas, rows = len(speeds), sum(commits)
    edges = compute_cuts([1.0] * replicas, rows)
    sizes, owners = _chunks(costs.chunk_rows, commits, edges)
    times = times_of(sizes, costs.row_s, scv, draw)
    calls = np.bincount(owners, minlength=replicas)
    factors = _task_factors(costs.spread, edges, speeds, draw)
    times = (times + costs.call_s / np.maximum(calls, 1)[owners]) * factors[owners]
    busy = np.bincount(owners, weights=times, minlength=replicas)
    squares = np.bincount(owners, weights=times * times / sizes, minlength=replicas)
    sizes_of_tasks = (high - low for low, high in pairwise(edges))
    columns = (busy.tolist(), calls.tolist(), squares.tolist())
    return [_task(costs, *values) for values in zip(sizes_of_tasks, *columns, strict=True)]


def _task_factors(
    sigma: float, edges: Sequence[int], speeds: Sequence[float], draw: Generator
) -> FloatArray:
    """Draw how much longer each task takes; a task without rows draws nothing and takes none."""
    has_rows = np.diff(edges) > 0
    factors: FloatArray = has_rows / np.array(speeds)
    if sigma:
        drawn = draw.standard_normal(np.count_nonzero(has_rows))
        factors[has_rows] *= np.exp(sigma * drawn - sigma * sigma / 2)
    return factors


def _chunks(
    size: int | None, commits: Sequence[int], edges: Sequence[int]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows and the task of each call: chunks end at the end of a commit or task."""
    borders = np.array(sorted({0, *accumulate(commits), *edges}))
    if size is not None:
        inner = [np.arange(low, high, size) for low, high in pairwise(borders)]
        borders = np.unique(np.concatenate((borders, *inner)))
    sizes = np.diff(borders)
    owners = np.searchsorted(edges, borders[:-1], side="right") - 1
    return sizes, owners


def sliced_tasks(
    costs: Costs,
    scv: float,
    rows: int,
    shares: Sequence[float],
    homes: Sequence[int],
    speeds: Sequence[float],
    draw: Generator,
) -> list[TaskRecord]:
    """Draw the slices of rows, and the time of each slice on the replica that owns it."""
    counts = draw_slice_counts(rows, costs.clump, shares, draw)
    each_s = costs.slice_s + costs.crowd_s * (len(speeds) - 1)
    loads = times_of(counts, costs.row_s, scv, draw) + each_s * (counts > 0)
    tasks = []
    for index, speed in enumerate(speeds):
        own_slices = [number for number in range(costs.slices) if homes[number] == index]
        factor = lognormal(draw, costs.spread) / speed
        seconds = loads[own_slices] * factor
        task_rows = int(counts[own_slices].sum())
        busy_s = float(seconds.sum()) + costs.call_s * factor
        record = TaskRecord(
            rows_in=task_rows,
            rows_out=0,
            busy_s=busy_s,
            cpu_s=busy_s * costs.cpu,
            began=0.0,
            ended=0.0,
            slices=tuple(own_slices),
            loads=tuple(seconds.tolist()),
            counts=tuple(counts[own_slices].tolist()),
        )
        tasks.append(record)
    return tasks


def draw_slice_counts(
    rows: int, clump: float, shares: Sequence[float], draw: Generator
) -> NDArray[np.int64]:
    """Draw the number of rows of each slice; `clump` rows of a key fall into it together."""
    groups = max(1, round(rows / clump))
    if groups > _MAX_DRAWS:
        counts = draw.multinomial(groups, shares)
        return np.diff(np.floor(np.cumsum(counts) * rows / groups + 1e-9), prepend=0.0).astype(
            np.int64
        )
    sizes = (
        np.diff(compute_cuts([1.0] * groups, rows)) if groups < rows else np.ones(rows, dtype=int)
    )
    homes = draw.choice(len(shares), size=len(sizes), p=shares)
    return np.bincount(homes, weights=sizes, minlength=len(shares)).astype(np.int64)


def _task(costs: Costs, rows: int, busy_s: float, chunks: int, squares: float) -> TaskRecord:
    return TaskRecord(
        rows_in=rows,
        rows_out=0,
        busy_s=busy_s,
        cpu_s=busy_s * costs.cpu,
        began=0.0,
        ended=0.0,
        chunks=chunks,
        squares=squares,
    )
