"""Published experiments: cells to run, the claims of the paper, and its figures.

Every paper has one TOML file in `experiments/`; a claim is judged by `penstock.lab.papers.claims`.
The runs of a paper are those of the simulator, or of a backend that the caller gives: rooms beside
this one, which it does not import, take part in this way.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from penstock.control.loop import Tick
from penstock.errors import InputError, nearest
from penstock.files.text import is_file, read_toml
from penstock.lab.grid.backend import RunBackend
from penstock.lab.grid.simulated_backend import SimulatedBackend
from penstock.lab.papers.claims import Claim, Results, Verdict, judge_claim, parse_claim
from penstock.lab.papers.printed_tables import PrintedTable, parse_printed_table
from penstock.lab.papers.run_timeline import RunTimeline
from penstock.runs.simulated_run import simulate
from penstock.runs.spec import SimulationSpec
from penstock.runs.spec_fields import check_field, entries, refuse_unknown
from penstock.workloads.pattern import SEED

PAPERS = ("pulsar", "thesis", "predictive", "streamhub")
#: Experiments that need a trace which is not part of this project.
ON_TRACES = ("predictive-tweets",)
PANELS = ("offered", "replicas", "latency", "age", "backlog")
#: Papers whose runs are not those of the simulator, with their backends.
Backends = Mapping[str, RunBackend[Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperFigure:
    """A figure to redraw: one run of each cell over time."""

    id: str
    title: str
    cells: tuple[str, ...]
    panels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperExperiments:
    """The experiments of a paper."""

    paper: str
    title: str
    source: str
    #: The specs of the cells are those of this backend.
    backend: RunBackend[Any]
    cells: Mapping[str, Any]
    seeds: tuple[int, ...]
    claims: tuple[Claim, ...]
    figures: tuple[PaperFigure, ...]
    printed: PrintedTable | None = None

    def with_traces_in(self, folder: Path) -> "PaperExperiments":
        """Return the experiments with their traces read from a folder."""
        cells = {name: _with_trace_in(folder, spec) for name, spec in self.cells.items()}
        return replace(self, cells=cells)

    def specs(self, seeds: int | None = None) -> dict[str, list[Any]]:
        """Return the runs of every cell, with all seeds or the first ones."""
        chosen = self.seeds[:seeds]
        return {
            cell: [replace(spec, seed=seed) for seed in chosen] for cell, spec in self.cells.items()
        }

    def verdicts(self, results: Results) -> list[Verdict]:
        """Judge every claim."""
        return [judge_claim(claim, results) for claim in self.claims]


def find_experiments(paper: str, folder: Path | None = None) -> Path:
    """Return the TOML file of a paper: in the given folder, or in `experiments/` beside `src/`."""
    path = (folder or Path(__file__).parents[4] / "experiments") / f"{paper}.toml"
    if not is_file(path):
        hint = "--experiments DIR: the folder experiments/ of the source of Penstock"
        raise InputError("--experiments", f"there is no {path.name}", hint, str(path.parent))
    return path


def load_experiments(
    paper: str, folder: Path | None = None, backends: Backends | None = None
) -> PaperExperiments:
    """Load the experiments of a paper by name."""
    others = backends or {}
    known = (*PAPERS, *others, *ON_TRACES)
    if paper not in known:
        raise InputError("paper", f"unknown paper {paper!r}", nearest(paper, known))
    path = find_experiments(paper, folder)
    data = read_toml(path, path.name)
    try:
        return parse_experiments(data, others.get(paper))
    except InputError as error:
        raise error.at(path.name) from None


def parse_experiments(
    data: Mapping[str, Any], other: RunBackend[Any] | None = None
) -> PaperExperiments:
    """Read a paper's experiments from parsed TOML; without another backend they are simulated."""
    known = ("paper", "title", "source", "seeds", "base", "cells", "claims", "figures", "printed")
    refuse_unknown(data, known, "")
    if other is not None and "figures" in data:
        raise InputError("figures", "show only runs of the simulator", "leave them out")
    backend = other or SimulatedBackend(simulate_and_follow)
    base = _fields(data.get("base", {}), backend, "base")
    cells = {
        name: backend.make({**base, **_fields(table, backend, f"cells.{name}")}, SEED)
        for name, table in data.get("cells", {}).items()
    }
    claims = tuple(parse_claim(claim, cells) for claim in data.get("claims", ()))
    return PaperExperiments(
        paper=data["paper"],
        title=data["title"],
        source=data["source"],
        backend=backend,
        cells=cells,
        seeds=tuple(SEED + i for i in range(data.get("seeds", 20))),
        claims=claims,
        figures=tuple(_figure(figure, cells) for figure in data.get("figures", ())),
        printed=parse_printed_table(data["printed"], cells) if "printed" in data else None,
    )


def check_experiments(published: PaperExperiments) -> None:
    """Check every cell, so that mistakes show before the first run."""
    for name, spec in published.cells.items():
        try:
            published.backend.check(spec)
        except InputError as error:
            raise error.under(f"cells.{name}") from None


def simulate_and_follow(spec: SimulationSpec) -> dict[str, Any]:
    """Simulate a run, and add the figures of its timeline as `course`."""
    timeline = RunTimeline()
    return simulate(spec, timeline.add).to_json() | {"course": timeline.result()}


def simulate_curves(
    spec: SimulationSpec, measures: Sequence[str]
) -> dict[str, list[tuple[float, float]]]:
    """Simulate a run, and return its points (minutes, value) for each panel."""
    curves: dict[str, list[tuple[float, float]]] = {panel: [] for panel in measures}
    before: list[Tick] = []

    def add_points(tick: Tick) -> None:
        for panel in measures:
            value = _PANELS[panel](tick, before[-1] if before else None)
            if value is not None:
                curves[panel].append((tick.at / 60, value))
        before[:] = [tick]

    simulate(spec, add_points)
    return curves


def _fields(table: Mapping[str, Any], backend: RunBackend[Any], where: str) -> dict[str, Any]:
    refuse_unknown(table, backend.fields, where)
    for field, value in table.items():
        check_field(field, value, f"{where}.{field}")
    return {
        field: entries(field, value) if isinstance(value, Mapping) else value
        for field, value in table.items()
    }


def _with_trace_in(folder: Path, spec: Any) -> Any:
    if not isinstance(spec, SimulationSpec) or "file" not in spec.workload_params:
        return spec
    file = str(folder / Path(spec.workload_params["file"]).name)
    return replace(spec, workload_params={**spec.workload_params, "file": file})


def _figure(data: Mapping[str, Any], cells: Mapping[str, Any]) -> PaperFigure:
    refuse_unknown(data, ("id", "title", "cells", "panels"), "figures")
    for cell in data["cells"]:
        if cell not in cells:
            raise InputError(f"figures.{data['id']}", f"there is no cell {cell!r}")
    for panel in data["panels"]:
        if panel not in PANELS:
            problem = f"unknown panel {panel!r}"
            raise InputError(f"figures.{data['id']}", problem, nearest(panel, PANELS))
    return PaperFigure(
        id=data["id"],
        title=data["title"],
        cells=tuple(data["cells"]),
        panels=tuple(data["panels"]),
    )


def _offered(tick: Tick, before: Tick | None) -> float:
    records = tick.status.offered_records - (before.status.offered_records if before else 0)
    return records / (tick.at - (before.at if before else 0.0))


def _latency(tick: Tick, _before: Tick | None) -> float | None:
    histograms = [h for h in tick.status.latency.values() if h.count]
    if not histograms:
        return None
    return sum(h.total for h in histograms) / sum(h.count for h in histograms)


_PANELS: dict[str, Callable[[Tick, Tick | None], float | None]] = {
    "offered": _offered,
    "replicas": lambda tick, _: float(sum(tick.status.requested.values())),
    "latency": _latency,
    "age": lambda tick, _: tick.status.age_s,
    "backlog": lambda tick, _: float(tick.status.backlog_records),
}
