"""A grid of runs: all combinations of the choices of its axes, over paired seeds.

    name = "targets"
    [base]                      # fields of all runs
    engine = "flink"
    [grid]                      # axes: one choice or a list of them
    query = ["q1", "q11"]
    policy = ["ds2", { policy = "hpa-cpu", params = { target = [0.5, 0.7] } }]
    seeds = 20                  # or a list of seeds

A choice is a value, or a table that also sets other fields and may have a `label`. A list
within such a table, or within `params`, `guards`, `workload_params` and `profile` of the grid,
is one choice for each of its values.

With `on = "spark"` at the top, the runs are executed on Spark and the fields are those of such a
run: `query` is its pipeline, and `build_args` are the arguments of the pipeline. A `note` is shown
with the results.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from penstock.errors import InputError, nearest
from penstock.files.text import read_toml
from penstock.lab.grid.axes import LOAD_AXES, Choice, list_choices, refuse_conflicts
from penstock.lab.grid.backend import AnySpec, RunBackend
from penstock.lab.grid.simulated_backend import SimulatedBackend
from penstock.lab.grid.spark_backend import SparkBackend
from penstock.runs.spec_fields import TABLES, by_first_name, check_field, entries, refuse_unknown
from penstock.workloads.pattern import SEED

#: Two days on two cores; more is probably a typing error.
MAX_RUNS = 500_000
_MAX_NAME_LENGTH = 120
#: The backends of grids, by name.
BACKENDS: dict[str, RunBackend[Any]] = {
    backend.name: backend for backend in (SimulatedBackend(), SparkBackend())
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One combination of choices, run once for each seed."""

    #: Unique, and valid as a file name.
    name: str
    #: Cells of one group have the same load for the same seed.
    group: str
    #: What distinguishes the cell within its group.
    label: str
    specs: tuple[AnySpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """All cells of an experiment, in the order of the file."""

    name: str
    cells: tuple[Cell, ...]
    backend: RunBackend[Any] = field(default_factory=SimulatedBackend)
    #: Shown with the results.
    note: str = ""

    @property
    def runs(self) -> dict[str, tuple[AnySpec, ...]]:
        """Return the runs of each cell by its name."""
        return {cell.name: cell.specs for cell in self.cells}


def read_grid(path: Path) -> Grid:
    """Read a grid from a TOML file; errors name the file."""
    data = read_toml(path)
    try:
        return parse_grid(data, path.stem)
    except InputError as error:
        raise error.at(str(path)) from None


def parse_grid(data: Mapping[str, Any], name: str = "grid") -> Grid:
    """Read a grid from parsed TOML; only the form is checked; `check_grid` checks the runs."""
    refuse_unknown(data, ("name", "on", "note", "base", "grid"), "")
    backend = find_backend(data.get("on", SimulatedBackend.name))
    for section in ("base", "grid"):
        if not isinstance(data.get(section, {}), Mapping):
            raise InputError(section, f"must be a table, got {data[section]!r}")
    name = data.get("name", name)
    if not isinstance(name, str) or not _file_name(name):
        raise InputError("name", f"must be a text, got {name!r}")
    note = data.get("note", "")
    if not isinstance(note, str):
        raise InputError("note", f"must be a text, got {note!r}")
    base = _base(data.get("base", {}), backend)
    table = dict(data.get("grid", {}))
    seeds = _seeds(table.pop("seeds", [SEED]))
    refuse_unknown(table, (*backend.fields, "seeds"), "grid")
    table = by_first_name(table, backend.aliases, "grid")
    axes = {axis: list(list_choices(axis, value, backend)) for axis, value in table.items()}
    refuse_conflicts(axes)
    size = math.prod(map(len, axes.values())) * len(seeds)
    if size > MAX_RUNS:
        raise InputError("grid", f"must be at most {MAX_RUNS} runs, got {size}")
    cells = [_cell(axes, taken, base, seeds, backend) for taken in product(*axes.values())]
    _refuse_duplicates(cells)
    note = " ".join(note.split())
    return Grid(name=_file_name(name), cells=tuple(cells), backend=backend, note=note)


def find_backend(name: object) -> RunBackend[Any]:
    """Return a backend by its name."""
    if not isinstance(name, str) or name not in BACKENDS:
        hint = nearest(name, BACKENDS) if isinstance(name, str) else ""
        raise InputError("on", f"must be {' or '.join(BACKENDS)}, got {name!r}", hint)
    return BACKENDS[name]


def check_grid(grid: Grid, where: str = "") -> None:
    """Prepare every cell and call its policy once, so that mistakes show before the first run."""
    for cell in grid.cells:
        try:
            grid.backend.check(cell.specs[0])
        except InputError as error:
            places = (where, f"cell {cell.name}", error.where)
            raise error.at(", ".join(place for place in places if place)) from None


def _base(given: Mapping[str, Any], backend: RunBackend[Any]) -> dict[str, Any]:
    refuse_unknown(given, backend.fields, "base")
    table = by_first_name(given, backend.aliases, "base")
    for name, value in table.items():
        check_field(name, value, f"base.{name}")
    return {key: entries(key, value) if key in TABLES else value for key, value in table.items()}


def _seeds(given: Any) -> tuple[int, ...]:
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return tuple(range(SEED, SEED + given))
    whole = isinstance(given, list) and all(type(seed) is int and seed >= 0 for seed in given)
    if not whole or not given:
        raise InputError("grid.seeds", f"must be how many, or a list of seeds, got {given!r}")
    if len(set(given)) < len(given):
        raise InputError("grid.seeds", f"must be different from each other, got {given}")
    return tuple(given)


def _cell(
    axes: Mapping[str, Sequence[Choice]],
    taken: Sequence[Choice],
    base: Mapping[str, Any],
    seeds: Iterable[int],
    backend: RunBackend[Any],
) -> Cell:
    fields = dict(base)
    for choice in taken:
        for key, value in choice.changes.items():
            fields[key] = {**fields.get(key, {}), **value} if key in TABLES else value
    specs = tuple(backend.make(fields, seed) for seed in seeds)
    shown = {
        axis: choice.words
        for axis, choice in zip(axes, taken, strict=True)
        if axis in ("query", "workload", "policy") or len(axes[axis]) > 1
    }
    shown = {**backend.names(specs[0]), **shown}
    load = [shown[axis] for axis in LOAD_AXES if axis in shown]
    rest = sorted((axis for axis in shown if axis not in LOAD_AXES), key=lambda a: a != "policy")
    label = [shown[axis] for axis in rest]
    name = _file_name("-".join([*load, *label]))
    return Cell(name=name, group=", ".join(load), label=", ".join(label), specs=specs)


def _file_name(text: str) -> str:
    """Replace characters that are not portable in file names.

    >>> _file_name("q1-constant(rate=5) then dns-mine")
    'q1-constant_rate=5_then_dns-mine'
    """
    return re.sub(r"[^A-Za-z0-9.=+-]+", "_", text).strip("._-")[:_MAX_NAME_LENGTH]


def _refuse_duplicates(cells: Iterable[Cell]) -> None:
    cells_by_name: dict[str, Cell] = {}
    for cell in cells:
        first = cells_by_name.setdefault(cell.name.lower(), cell)
        if first is cell:
            continue
        if first.specs == cell.specs:
            raise InputError("grid", f"holds {cell.name!r} twice")
        hint = 'give one of them a label, as in { policy = "./mine.py", label = "mine" }'
        raise InputError("grid", f"has two different cells called {cell.name!r}", hint)
