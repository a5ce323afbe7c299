"""Prints what each ingredient of the policy slo is worth: some loads of the tuning half without it.

python experiments/slo/ablations.py
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

from penstock.core.policies.slo import change_cost, curves, forecast, policy
from penstock.lab.grid.grid import read_grid
from penstock.lab.hindsight.cheapest_run import compute_hindsight
from penstock.runs.simulated_run import prepare_simulation, simulate
from penstock.runs.spec import SimulationSpec

GRID = Path(__file__).with_name("tuning.toml")
#: Engine, objective, beginning of the workload.
LOADS = [
    ("pulsar", 3, "cosine(period=20) * 3e-6"),
    ("pulsar", 10, "cosine(period=20) * 1.5e-5"),
    ("storm-restart", 30, "spikes"),
    ("flink-fair", 30, "cosine"),
]


def find_largest(needed: Any, _share: float) -> float:
    """Return what the worst case needs, instead of what 99 % of the records need."""
    return float(needed.max())


#: What is left out, and the values that leave it out.
INGREDIENTS: dict[str, list[tuple[Any, str, Any]]] = {
    "nothing": [],
    "bursts: the mean is enough": [(policy, "find_rate", lambda *_: 0.0)],
    "the share: the worst case of the past is carried": [(policy, "find_rate", find_largest)],
    "the next decision: nobody helps later": [(curves, "RECOURSE", 1.0)],
    "trends": [(forecast, "DAMPINGS", ())],
    "seasons": [(forecast, "MIN_EXPLAINED", 2.0)],
    "waiting before a decrease": [(change_cost, "HOLD_INTERVALS", 1)],
    "joint decreases": [(policy, "MIN_SAVING", 0.0)],
    "the guess that a change pauses": [(change_cost, "MAX_GUESSED_PAUSE_S", 0.0)],
}


def main() -> int:
    """Print a table: the mean over the loads, without one ingredient at a time."""
    specs = list(find_specs())
    least = [compute_hindsight(prepare_simulation(spec)).replica_hours for spec in specs]
    print(f"\n| left out | {' | '.join(describe(spec) for spec in specs)} | mean cost | rescales |")
    print(f"|---|{'--:|' * (len(specs) + 2)}")
    for name, changes in INGREDIENTS.items():
        with replaced(changes):
            scores = [simulate(spec).scores for spec in specs]
        known = [score for score in scores if score is not None]
        ratios = [score.replica_hours / hours for score, hours in zip(known, least, strict=True)]
        missed = [100 * (score.slo.violated_share or 0.0) for score in known]
        cells = " | ".join(f"{m:.1f} %, {r:.2f}" for m, r in zip(missed, ratios, strict=True))
        changed = fmean(score.rescales for score in known)
        print(f"| {name} | {cells} | {fmean(ratios):.2f} | {changed:.0f} |", flush=True)
    print("\nEach cell: records that missed the objective, and the cost over hindsight.")
    return 0


def find_specs() -> Iterator[SimulationSpec]:
    """Yield the runs of slo in the chosen loads, with their first seed."""
    for cell in read_grid(GRID).cells:
        spec = cell.specs[0]
        assert isinstance(spec, SimulationSpec)
        if spec.policy == "slo" and any(_is_load(spec, *load) for load in LOADS):
            yield spec


def _is_load(spec: SimulationSpec, engine: str, objective_s: float, workload: str) -> bool:
    same = (spec.engine, spec.objective_s) == (engine, objective_s)
    return same and spec.query != "q3" and spec.workload.startswith(workload)


def describe(spec: SimulationSpec) -> str:
    """Return a title for a load."""
    name = spec.workload.split("(")[0].split(" ")[0]
    return f"{spec.query} {spec.engine} {spec.objective_s:g} s, {name}"


@contextmanager
def replaced(changes: list[tuple[Any, str, Any]]) -> Iterator[None]:
    """Replace attributes of modules for a while."""
    before = [(module, name, getattr(module, name)) for module, name, _ in changes]
    try:
        for module, name, value in changes:
            setattr(module, name, value)
        yield
    finally:
        for module, name, value in before:
            setattr(module, name, value)


if __name__ == "__main__":
    sys.exit(main())
