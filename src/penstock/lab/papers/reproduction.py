"""Runs the experiments of a paper, judges its claims and simulates the runs of its figures."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from penstock.core.progress import WorkProgress
from penstock.lab.grid.runner import run_all
from penstock.lab.papers.claims import ClaimAnswer, Results, Verdict
from penstock.lab.papers.experiments import (
    Backends,
    PaperExperiments,
    PaperFigure,
    check_experiments,
    load_experiments,
    simulate_curves,
)

#: One run of a cell as curves: panel -> points of (minutes, value).
Curves = Mapping[str, Sequence[tuple[float, float]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RedrawnFigure:
    """A figure with its runs and their policies."""

    figure: PaperFigure
    curves: Mapping[str, Curves]
    policies: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chapter:
    """A paper's verdicts."""

    published: PaperExperiments
    seeds: int
    verdicts: tuple[Verdict, ...]
    results: Results
    figures: tuple[RedrawnFigure, ...] = ()

    @property
    def summary(self) -> str:
        """Return the number of claims for each answer."""
        counts = [(a, sum(v.answer is a for v in self.verdicts)) for a in ClaimAnswer]
        return f"{len(self.verdicts)} claims: " + ", ".join(f"{n} {a}" for a, n in counts)


def load_checked(
    papers: Sequence[str],
    folder: Path | None = None,
    traces: Path = Path(),
    backends: Backends | None = None,
) -> list[PaperExperiments]:
    """Load the experiments of papers, and check every cell before the first run."""
    loaded = [load_experiments(paper, folder, backends) for paper in papers]
    published = [experiments.with_traces_in(traces) for experiments in loaded]
    for experiments in published:
        check_experiments(experiments)
    return published


def reproduce_paper(
    published: PaperExperiments,
    out: Path,
    *,
    seeds: int | None = None,
    jobs: int | None = None,
    on_progress: Callable[[WorkProgress], None] | None = None,
) -> Chapter:
    """Run the experiments of a paper and judge its claims; results are stored below `out`."""
    specs = published.specs(seeds)
    folder = out / _folder_name(published.title)
    results = run_all(specs, published.backend, folder, jobs, on_progress)
    return Chapter(
        published=published,
        seeds=len(next(iter(specs.values()))),
        verdicts=tuple(published.verdicts(results)),
        results=results,
    )


def redraw_figure(figure: PaperFigure, published: PaperExperiments) -> RedrawnFigure:
    """Simulate the runs of a figure, with the first seed."""
    specs = published.specs(1)
    return RedrawnFigure(
        figure=figure,
        curves={cell: simulate_curves(specs[cell][0], figure.panels) for cell in figure.cells},
        policies={cell: published.cells[cell].policy for cell in figure.cells},
    )


def _folder_name(title: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in title.lower())[:40]
