"""`penstock reproduce`: runs published experiments and checks their claims."""

import argparse
import json
import sys
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from penstock.cli.options import check_at_least_1
from penstock.cli.subcommands import add_command
from penstock.decentralized.simulator.run_backend import DecentralizedBackend
from penstock.files.text import write_text
from penstock.lab.grid.runner import make_directory
from penstock.lab.papers.experiments import ON_TRACES, PAPERS, Backends, PaperExperiments
from penstock.lab.papers.reproduction import (
    Chapter,
    load_checked,
    redraw_figure,
    reproduce_paper,
)
from penstock.reports.progress import ProgressBar
from penstock.reports.reproduction import to_html, to_markdown, to_text, verdict_json

#: Papers whose runs are not those of the simulator.
BACKENDS: Backends = {"decentralized": DecentralizedBackend()}
EXAMPLES = """\
examples:
  penstock reproduce all                     all claims of all papers, about 20 minutes
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
    add = parser.add_argument
    papers = ("all", *PAPERS, *BACKENDS, *ON_TRACES)
    about = f"one of {', '.join(papers)} (default: %(default)s)"
    add("paper", nargs="?", default="all", choices=papers, metavar="PAPER", help=about)
    add("--seeds", type=int, metavar="N", help="seeds per cell (default: that of the paper)")
    add("--jobs", type=int, metavar="N", help="parallel processes (default: one per core)")
    about = "directory of the experiments (default: experiments/ beside the source)"
    add("--experiments", type=Path, metavar="DIR", help=about)
    about = "directory of the traces (default: .)"
    add("--data", type=Path, default=Path(), metavar="DIR", help=about)
    about = "results directory (default: %(default)s)"
    add("--out", type=Path, default=Path("runs/reproduce"), metavar="DIR", help=about)
    add("--markdown", type=Path, metavar="FILE", help="write a table of all claims")
    add("--html", type=Path, metavar="FILE", help="write a page with tables and figures")
    add("--json", action="store_true", help="print the verdicts as JSON")


def run(args: argparse.Namespace) -> int:
    """Run the experiments and print the verdicts."""
    check_at_least_1("--seeds", args.seeds)
    check_at_least_1("--jobs", args.jobs)
    make_directory(args.out)
    papers = (*PAPERS, *BACKENDS) if args.paper == "all" else (args.paper,)
    began_s = time.monotonic()
    published = load_checked(papers, args.experiments, args.data, BACKENDS)
    chapters = [_chapter(each, args) for each in published]
    if args.markdown is not None:
        _write(args.markdown, to_markdown(chapters), "--markdown")
    if args.html is not None:
        _write(args.html, to_html(chapters), "--html")
    if args.json:
        print(json.dumps([verdict_json(v) for c in chapters for v in c.verdicts], indent=1))
    else:
        print("\n\n".join(to_text(chapter) for chapter in chapters))
    print(f"done in {time.monotonic() - began_s:.0f} s", file=sys.stderr)
    return 0


def _chapter(published: PaperExperiments, args: argparse.Namespace) -> Chapter:
    with ProgressBar(f"runs of {published.paper}") as bar:
        chapter = reproduce_paper(
            published, args.out, seeds=args.seeds, jobs=args.jobs, on_progress=bar.show
        )
    figures = []
    for figure in published.figures if args.html is not None else ():
        print(f"{published.paper}: drawing {figure.id}", file=sys.stderr)
        figures.append(redraw_figure(figure, published))
    return replace(chapter, figures=tuple(figures))


def _write(path: Path, text: str, option: str) -> None:
    with suppress(OSError, ValueError):  # then it cannot be written, which is said below
        path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, text, option)
    print(f"wrote {path}", file=sys.stderr)
