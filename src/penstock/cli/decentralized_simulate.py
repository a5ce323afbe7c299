"""`penstock decentralized simulate`: simulates a pipeline whose instances decide alone."""

import argparse
import json
import sys
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.cli.options import check_at_least_1
from penstock.cli.subcommands import add_verb
from penstock.core.progress import WorkProgress
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.simulation import simulate_setup
from penstock.decentralized.simulator.summary import summarize
from penstock.decentralized.simulator.timeline_ticks import record_simulation, write_timeline
from penstock.errors import InputError
from penstock.lab.grid.runner import make_directory
from penstock.reports.decentralized_pictures import write_figures
from penstock.reports.decentralized_text import (
    seeds_json,
    seeds_text,
    simulation_json,
    simulation_text,
)
from penstock.reports.progress import ProgressBar

EXAMPLES = """\
examples:
  penstock decentralized simulate                          the setup of the paper
  penstock decentralized simulate --json                   figures and series
  penstock decentralized simulate --seeds 50 --mode counted   means with intervals
  penstock decentralized simulate --figures figures        figures 3 to 6 of the paper
  penstock decentralized simulate --instances 2000 --mode counted   10,000 instances
  penstock decentralized simulate --out runs/alone         for penstock dashboard
  penstock decentralized simulate --message-loss 0.01      what breaks if messages are lost
  penstock decentralized simulate --load trace --trace load.csv --steps 100

Every instance decides alone. The exact mode delivers every message of the protocol; the counted
mode computes the same numbers of messages from shared neighbour sets and is much faster.
accuracy is instances / ideal, with ideal = ceil(load / (r x capacity)). A trace has a column time,
a column rate for all operators (or rate-1, rate-2, ...) and one row per step.
"""
#: A simulation with more instance steps shows its progress.
_MIN_LONG = 50_000
_METAVARS = {"int": "N", "float": "X", "str": "FILE"}


def add_simulate_verb(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the verb; its options are the fields of the setup."""
    about = "simulate a pipeline whose instances decide alone"
    parser = add_verb(verbs, "simulate", about, EXAMPLES, run)
    for item in DecentralizedSetup.describe():
        unit = f" {item.spec.unit}" if item.spec.unit else ""
        default = "" if item.default == "" else f" (default: {item.default}{unit})"
        parser.add_argument(
            _option(item.name),
            metavar="|".join(item.spec.choices) or _METAVARS[item.type],
            help=f"{item.spec.doc}{default}".replace("%", "%%"),
        )
    about = "simulate seeds S, S + 1, ... and print means with 95 %% intervals"
    parser.add_argument("--seeds", type=int, metavar="N", help=about)
    about = "draw figures 3 to 6 of the paper as SVG and PNG"
    parser.add_argument("--figures", type=Path, metavar="DIR", help=about)
    about = "run directory, for penstock dashboard, report and top; a step counts as a second"
    parser.add_argument("--out", type=Path, metavar="DIR", help=about)


def run(args: argparse.Namespace) -> int:
    """Simulate one seed or several, and print the result."""
    check_at_least_1("--seeds", args.seeds)
    setup = _read_setup(vars(args))
    for option, value in (("--figures", args.figures), ("--out", args.out)):
        if args.seeds is not None and value is not None:
            raise InputError(option, "shows one seed", "leave out --seeds")
    return _run_seeds(setup, args) if args.seeds is not None else _run_one(setup, args)


def _run_one(setup: DecentralizedSetup, args: argparse.Namespace) -> int:
    is_long = setup.operators * setup.instances * setup.steps > _MIN_LONG
    with ExitStack() as stack:
        record = None
        if args.out is not None:
            record = stack.enter_context(record_simulation(args.out, setup))
        bar = stack.enter_context(ProgressBar("steps", resumes=False))
        show = (lambda step: bar.show(_progress(setup.steps, step + 1))) if is_long else _ignore
        timeline = simulate_setup(setup, show)
        if record is not None:
            write_timeline(record, timeline)
    if args.figures is not None:
        make_directory(args.figures, "--figures")
        for path in write_figures(timeline, args.figures):
            print(f"wrote {path}", file=sys.stderr)
    print(json.dumps(simulation_json(timeline)) if args.json else simulation_text(timeline))
    return 0


def _run_seeds(setup: DecentralizedSetup, args: argparse.Namespace) -> int:
    summaries = []
    with ProgressBar("seeds", resumes=False) as bar:
        for done in range(args.seeds):
            bar.show(_progress(args.seeds, done))
            summaries.append(summarize(simulate_setup(replace(setup, seed=setup.seed + done))))
        bar.show(_progress(args.seeds, args.seeds))
    if args.json:
        print(json.dumps(seeds_json(setup, summaries), indent=1))
    else:
        print(seeds_text(setup, summaries))
    return 0


def _read_setup(given: dict[str, Any]) -> DecentralizedSetup:
    names = [item.name for item in DecentralizedSetup.describe()]
    fields = {name: given[name] for name in names if given[name] is not None}
    try:
        return DecentralizedSetup.parse(fields)
    except InputError as error:
        raise InputError(_option(error.field), error.problem, error.hint) from None


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _progress(total: int, done: int) -> WorkProgress:
    return WorkProgress(total=total, kept=0, done=done)


def _ignore(_step: int) -> None:
    pass
