"""`penstock explain`: why a run changed its replicas, and why it did not."""

import argparse
import re
from pathlib import Path

from penstock.cli.subcommands import add_command
from penstock.errors import InputError
from penstock.reports.explanation import explain_run
from penstock.runs.run_directory import read_run

EXAMPLES = """\
examples:
  penstock explain runs/q1                       every change, its reason and its effect
  penstock explain runs/q1 --operator source     the same for one operator
  penstock explain runs/q1 --at 1995             all details of the decision at 1995 s
  penstock explain runs/q1 --at 33m              the decision at 33 min
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "explain",
        summary="explain why a run changed its replicas, or did not",
        description="Explain from a run's journal why replicas changed, and why they did not.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    add("directory", type=Path, metavar="RUN", help="run directory")
    add("--at", metavar="T", help="explain the tick nearest to T: seconds, or minutes such as 33m")
    add("--operator", metavar="NAME", help="explain this operator only")


def run(args: argparse.Namespace) -> int:
    """Explain one tick, or the whole run."""
    at_s = None if args.at is None else read_time(args.at)
    print("\n".join(explain_run(read_run(args.directory), args.operator, at_s)))
    return 0


def read_time(text: str) -> float:
    """Read a time of a run in seconds.

    >>> read_time("90"), read_time("90s"), read_time("1.5m")
    (90.0, 90.0, 90.0)
    """
    unit = 60 if text.endswith("m") else 1
    number = text.removesuffix("m").removesuffix("s")
    if not re.fullmatch(r"\d+(\.\d*)?|\.\d+", number):
        raise InputError("--at", f"must be seconds, or minutes such as 33m, got {text!r}")
    return float(number) * unit
