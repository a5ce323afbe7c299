"""Runs a grid in its results directory; finished runs are not repeated."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from penstock.core.progress import WorkProgress
from penstock.engines.spark.cluster.masters import Master, check_java, parse_executors, parse_master
from penstock.errors import InputError, PenstockError
from penstock.lab.grid.grid import Grid, check_grid, read_grid
from penstock.lab.grid.runner import GRID_FILE, make_directory, run_all

#: Spark's log, of runs that were spread over a cluster.
LOG = "spark.log"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """Executors that simulated runs are spread over."""

    master: Master
    executors: int


def read_cluster(master: str, executors: int | None, conf: Mapping[str, str]) -> Cluster:
    """Read the options of a cluster; by default all workers of a local one.

    >>> read_cluster("local-cluster[3,1,1024]", None, {}).executors
    3
    """
    parsed = parse_master(master, conf)
    text = f"{executors}:{executors}" if executors is not None else None
    bounds = parse_executors(text, parsed)
    return Cluster(master=parsed, executors=bounds[1] if bounds is not None else 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridRun:
    """A grid that was run: how many runs it has, how many are new, and which failed."""

    grid: Grid
    out: Path
    total: int
    new: int
    failed: tuple[PenstockError, ...]


def read_checked_grid(file: Path) -> Grid:
    """Read a grid and prepare each of its runs, so that mistakes show before the first."""
    grid = read_grid(file)
    check_grid(grid, str(file))
    return grid


def run_grid(
    file: Path,
    out: Path | None = None,
    jobs: int | None = None,
    on_progress: Callable[[WorkProgress], None] | None = None,
    on_start: Callable[[Grid, Path], None] | None = None,
    cluster: Cluster | None = None,
) -> GridRun:
    """Run what is missing of a grid; results go to `out`, by default `runs/NAME`.

    `on_start` gets the checked grid and its directory before the first run. Runs on Spark execute
    one after the other; one that fails does not end the others. Simulated runs are spread over a
    `cluster` if there is one, else over the cores of this machine.
    """
    grid = read_checked_grid(file)
    is_sequential = grid.backend.is_sequential
    if is_sequential:
        _check_sequential(grid, jobs)
        if cluster is not None:
            hint = "set master in [base] of the grid: each run has its own session"
            raise InputError("--master", "spreads simulated runs; these run on Spark", hint)
    if is_sequential or cluster is not None:
        check_java()
    out = out or Path("runs") / grid.name
    make_directory(out)
    (out / GRID_FILE).write_bytes(file.read_bytes())
    if on_start is not None:
        on_start(grid, out)
    last = WorkProgress(total=0, kept=0, done=0)

    def report(progress: WorkProgress) -> None:
        nonlocal last
        last = progress
        if on_progress is not None:
            on_progress(progress)

    failed: list[PenstockError] = []
    on_failure = failed.append if is_sequential else None
    apply = partial(_map_on_cluster, cluster, out / LOG) if cluster is not None else None
    run_all(grid.runs, grid.backend, out, 1 if is_sequential else jobs, report, on_failure, apply)
    new = last.done - len(failed)
    return GridRun(grid=grid, out=out, total=last.total, new=new, failed=tuple(failed))


def _map_on_cluster(
    cluster: Cluster, log: Path, function: Callable[[Any], Any], items: Sequence[Any], /
) -> Iterator[tuple[int, Any]]:
    from penstock.lab.grid.cluster_map import map_on_cluster  # noqa: PLC0415  (loads Spark)

    return map_on_cluster(function, items, cluster.master, cluster.executors, log)


def _check_sequential(grid: Grid, jobs: int | None) -> None:
    if jobs not in (None, 1):
        problem = f"must be 1 for runs on {grid.backend.name.capitalize()}, got {jobs}"
        raise InputError("--jobs", problem, "they run one after the other: omit --jobs")
