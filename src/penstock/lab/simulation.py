"""Simulates one run: its directory, its observers, its cost in hindsight."""

import shutil
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from penstock.control.loop import Tick
from penstock.errors import PenstockError
from penstock.runs.result import RunResult
from penstock.runs.run_directory import begin_run, default_place, finish_run
from penstock.runs.simulated_run import PreparedSimulation, prepare_simulation
from penstock.runs.spec import SimulationSpec

Observers = Sequence[Callable[[Tick], None]]


class SimulatedRun(NamedTuple):
    """The result of a simulation and its run directory; None if none was written."""

    result: RunResult
    directory: Path | None


def simulate_run(
    spec: SimulationSpec,
    directory: Path | None = None,
    *,
    has_directory: bool = True,
    observers: Observers = (),
    hindsight: bool = False,
) -> SimulatedRun:
    """Simulate a spec; the run directory is `runs/NAME-TIME` by default."""
    if has_directory and directory is None:
        directory = default_simulation_directory(spec)
    return run_simulation(
        prepare_simulation(spec), directory, observers=observers, hindsight=hindsight
    )


def run_simulation(
    prepared: PreparedSimulation,
    directory: Path | None,
    *,
    observers: Observers = (),
    hindsight: bool = False,
) -> SimulatedRun:
    """Run a prepared simulation; with a directory, write spec, journal and result there.

    Every observer gets every tick. With `hindsight`, the result compares the cost with the
    cheapest possible run.
    """
    compare = _hindsight(prepared) if hindsight else None
    with ExitStack() as stack:
        takers = list(observers)
        if directory is not None:
            journal = begin_run(directory, prepared.spec.to_json(), prepared.header())
            takers.append(stack.enter_context(journal).write)

        def send(tick: Tick) -> None:
            for take in takers:
                take(tick)

        try:
            result = prepared.run(send)
        except PenstockError:  # some mistakes show at a decision only; leave no half a run
            if directory is not None:
                shutil.rmtree(directory)
            raise
    if compare is not None:
        result = compare(result)
    if directory is not None:
        finish_run(directory, result)
    return SimulatedRun(result, directory)


def default_simulation_directory(spec: SimulationSpec) -> Path:
    """Return the default run directory, named after query, workload and policy."""
    now = time.strftime("%Y%m%d-%H%M%S")
    return default_place((spec.query, spec.workload, spec.policy), now, Path("runs"))


def _hindsight(prepared: PreparedSimulation) -> Callable[[RunResult], RunResult]:
    """Return a function that compares a result with the hindsight optimum."""
    # imported here because it takes long to load, and most runs do not need it
    from penstock.lab.hindsight.cheapest_run import compare_cost, compute_hindsight  # noqa: PLC0415

    bound = compute_hindsight(prepared)

    def compare(result: RunResult) -> RunResult:
        hours = result.scores.replica_hours if result.scores is not None else 0.0
        cost = compare_cost(hours, bound.replica_hours, feasible=bound.feasible)
        return replace(result, hindsight=cost)

    return compare
