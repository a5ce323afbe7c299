"""Compares runs with the cheapest run in hindsight, which is computed once for each load."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from penstock.core.progress import WorkProgress
from penstock.errors import PenstockError
from penstock.lab.grid.backend import Result
from penstock.lab.grid.runner import map_in_parallel, write_json
from penstock.lab.hindsight.cheapest_run import compare_cost, compute_hindsight, make_hindsight_key
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

#: Version of the files in `hindsight/`.
VERSION = 1
BOUNDS = "hindsight"


class CostBound(NamedTuple):
    """The stored part of a hindsight."""

    replica_hours: float
    feasible: bool


def add_hindsight(
    results: Mapping[str, Sequence[Result]],
    out: Path | None = None,
    jobs: int | None = None,
    progress: Callable[[WorkProgress], None] | None = None,
) -> dict[str, list[Result]]:
    """Return the results, each with `hindsight {replica_hours, ratio, feasible}`.

    The hindsight does not depend on the policy: it is computed once for each load, pipeline,
    profile and objective, and stored as `hindsight/<key>.json` in the directory `out`.
    """
    specs = {
        (cell, index): SimulationSpec.from_json(run["spec"])
        for cell, runs in results.items()
        for index, run in enumerate(runs)
    }
    keys = {place: make_hindsight_key(prepare_simulation(spec)) for place, spec in specs.items()}
    spec_by_key = {key: specs[place] for place, key in keys.items()}
    bounds = _compute_bounds(spec_by_key, out, jobs, progress)
    return {
        cell: [_add_bound(run, bounds[keys[cell, index]]) for index, run in enumerate(runs)]
        for cell, runs in results.items()
    }


def _compute_bounds(
    spec_by_key: Mapping[str, SimulationSpec],
    out: Path | None,
    jobs: int | None,
    progress: Callable[[WorkProgress], None] | None,
) -> dict[str, CostBound]:
    bounds = {key: old for key in spec_by_key if (old := _read_bound(_file(out, key))) is not None}
    todo = [key for key in spec_by_key if key not in bounds]
    report, kept = progress or (lambda _: None), len(bounds)
    report(WorkProgress(total=len(spec_by_key), kept=kept, done=0))
    for done, (index, bound) in enumerate(
        map_in_parallel(compute_bound, [spec_by_key[key] for key in todo], jobs), 1
    ):
        key = todo[index]
        bounds[key] = bound
        if (file := _file(out, key)) is not None:
            write_json(
                file, {"version": VERSION, "spec": spec_by_key[key].to_json(), **bound._asdict()}
            )
        report(WorkProgress(total=len(spec_by_key), kept=kept, done=done))
    return bounds


def compute_bound(spec: SimulationSpec) -> CostBound:
    """Return the minimum replica hours for the load of a run."""
    try:
        cheapest = compute_hindsight(prepare_simulation(spec))
    except PenstockError as error:  # only its text can be pickled for sure
        place = f"{spec.query}, {spec.workload}, seed {spec.seed}"
        raise PenstockError(f"hindsight of {place}: {error}") from None
    return CostBound(cheapest.replica_hours, cheapest.feasible)


def _add_bound(run: Result, bound: CostBound) -> Result:
    cost = compare_cost(run["replica_hours"], bound.replica_hours, feasible=bound.feasible)
    return {**run, "hindsight": cost.to_json()}


def _file(out: Path | None, key: str) -> Path | None:
    return out / BOUNDS / f"{key}.json" if out else None


def _read_bound(file: Path | None) -> CostBound | None:
    if file is None or not file.is_file():
        return None
    try:
        stored = json.loads(file.read_text(encoding="utf-8"))
        if stored["version"] != VERSION:
            return None
        return CostBound(stored["replica_hours"], stored["feasible"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
