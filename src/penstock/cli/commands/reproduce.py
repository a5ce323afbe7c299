"""`penstock reproduce`: runs published experiments and checks their claims."""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.cli.subcommands import add_command
from penstock.errors import InputError
from penstock.files.text import explain_os_error, write_text
from penstock.lab.grid.runner import run_all
from penstock.lab.grid.simulated_backend import SimulatedBackend
from penstock.lab.papers.claims import Verdict
from penstock.lab.papers.experiments import (
    ON_TRACES,
    PAPERS,
    PaperExperiments,
    PaperFigure,
    check_experiments,
    load_experiments,
    simulate_and_follow,
    simulate_curves,
)
from penstock.reports.progress import ProgressBar
from penstock.reports.reproduction import Chapter, RedrawnFigure, to_html, to_markdown, to_text
from penstock.runs.spec import SimulationSpec

EXAMPLES = """\
examples:
  penstock reproduce all                     all claims of the three papers, about 10 minutes
  penstock reproduce thesis --seeds 5        faster, with wider confidence intervals
  penstock reproduce predictive --json       the verdicts as JSON
  penstock reproduce predictive-tweets --data DIR   the main comparison on a real trace
  penstock reproduce all --markdown docs/reproduction.md --html reproduction.html

Results are stored in --out and reused. The figures of the HTML page show the first seed.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "reproduce",
        summary="run published experiments and check their claims",
        description="Run the published experiments on the simulator and check every claim.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument("paper", nargs="?", default="all", choices=("all", *PAPERS, *ON_TRACES))
    parser.add_argument("--seeds", type=int, metavar="N", help="seeds per cell (default: 20)")
    parser.add_argument(
        "--jobs", type=int, metavar="N", help="parallel processes (default: one per core)"
    )
    about = "directory of the experiments (default: experiments/ beside the source)"
    parser.add_argument("--experiments", type=Path, metavar="DIR", help=about)
    parser.add_argument(
        "--data", default=".", metavar="DIR", help="directory of the traces (default: .)"
    )
    parser.add_argument(
        "--out",
        default="runs/reproduce",
        metavar="DIR",
        help="results directory (default: %(default)s)",
    )
    parser.add_argument("--markdown", metavar="FILE", help="write a table of all claims")
    parser.add_argument("--html", metavar="FILE", help="write a page with tables and figures")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the experiments and print the verdicts."""
    _check(args)
    papers = PAPERS if args.paper == "all" else (args.paper,)
    published = [
        load_experiments(paper, args.experiments).with_traces_in(Path(args.data))
        for paper in papers
    ]
    for paper in published:
        check_experiments(paper)
    began = time.monotonic()
    chapters = [_chapter(paper, args) for paper in published]
    if args.markdown:
        _write(args.markdown, to_markdown(chapters), "--markdown")
    if args.html:
        _write(args.html, to_html(chapters), "--html")
    if args.json:
        print(json.dumps([_to_json(v) for c in chapters for v in c.verdicts], indent=1))
    else:
        print("\n\n".join(to_text(chapter) for chapter in chapters))
    print(f"done in {time.monotonic() - began:.0f} s", file=sys.stderr)
    return 0


def _check(args: argparse.Namespace) -> None:
    for option, value in (("--seeds", args.seeds), ("--jobs", args.jobs)):
        if value is not None and value < 1:
            raise InputError(option, f"must be at least 1, got {value}")
    try:
        Path(args.out).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise InputError("--out", f"cannot be created: {explain_os_error(error)}") from None


def _chapter(published: PaperExperiments, args: argparse.Namespace) -> Chapter:
    specs = published.specs(args.seeds)
    out = Path(args.out) / _folder(published)
    with ProgressBar(f"runs of {published.paper}") as bar:
        results = run_all(specs, SimulatedBackend(simulate_and_follow), out, args.jobs, bar.show)
    return Chapter(
        published=published,
        seeds=len(next(iter(specs.values()))),
        verdicts=tuple(published.verdicts(results)),
        results=results,
        figures=tuple(_redraw(figure, published, specs) for figure in published.figures)
        if args.html
        else (),
    )


def _folder(published: PaperExperiments) -> str:
    return "".join(c if c.isalnum() else "-" for c in published.title.lower())[:40]


def _redraw(
    figure: PaperFigure, published: PaperExperiments, specs: Mapping[str, list[SimulationSpec]]
) -> RedrawnFigure:
    print(f"{published.paper}: drawing {figure.id}", file=sys.stderr)
    return RedrawnFigure(
        figure=figure,
        curves={cell: simulate_curves(specs[cell][0], figure.panels) for cell in figure.cells},
        policies={cell: published.cells[cell].policy for cell in figure.cells},
    )


def _to_json(verdict: Verdict) -> dict[str, Any]:
    claim = verdict.claim
    return {
        "id": claim.id,
        "where": claim.where,
        "says": claim.says,
        "answer": str(verdict.answer),
        "measured": verdict.measured,
        "published": claim.published,
        "why": claim.why,
        "without": verdict.without,
    }


def _write(path: str, text: str, option: str) -> None:
    with suppress(OSError, ValueError):  # then it cannot be written, which is said below
        Path(path).parent.mkdir(parents=True, exist_ok=True)
    write_text(Path(path), text, option)
    print(f"wrote {path}", file=sys.stderr)
