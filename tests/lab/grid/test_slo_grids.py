"""The halves of the comparison of slo: well-formed, and without a load or a seed in common."""

from pathlib import Path

import pytest

from penstock.lab.grid.grid import read_grid
from penstock.runs.spec import SimulationSpec

FOLDER = Path(__file__).parents[3] / "experiments" / "slo"


def loads_and_seeds(name: str) -> tuple[set[tuple[str, str, str]], set[int]]:
    specs = [spec for cell in read_grid(FOLDER / name).cells for spec in cell.specs]
    simulations = [spec for spec in specs if isinstance(spec, SimulationSpec)]
    assert len(simulations) == len(specs)
    loads = {(spec.engine, spec.query, spec.workload) for spec in simulations}
    return loads, {spec.seed for spec in simulations}


@pytest.mark.parametrize("suffix", [".toml", "-spark.toml", "-traces.toml"])
def test_nothing_that_is_reported_was_tuned_on(suffix: str) -> None:
    loads, seeds = loads_and_seeds(f"tuning{suffix}")
    other_loads, other_seeds = loads_and_seeds(f"held-out{suffix}")
    assert len(loads) >= 2 and len(other_loads) >= 2
    assert {load[2] for load in loads}.isdisjoint(load[2] for load in other_loads)
    assert seeds.isdisjoint(other_seeds)
