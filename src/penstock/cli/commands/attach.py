"""`penstock attach`: runs a program that uses Spark, and follows its streaming queries."""

import argparse
import re
from pathlib import Path

from penstock.cli.options import add_pairs, parse_pairs
from penstock.cli.subcommands import add_command
from penstock.control.registry import DEFAULT_POLICY
from penstock.errors import InputError

EXAMPLES = """\
examples:
  penstock attach --freshness '30 s' app.py                       advise, change nothing
  penstock attach --freshness '30 s' --mode executors --executors 1:8 app.py
  penstock attach --freshness '2 min' --out runs/shop app.py -- --its-own option

The program runs as with python PROGRAM, in this process, and its exit code is returned. All
queries of its Spark session are followed, also later ones. penstock explain, top, report, replay
and dashboard read the run directory. In a program that you can change, call penstock.attach.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "attach",
        summary="run a Spark program, and scale its executors or advise",
        description="Run a program that uses Spark, follow its streaming queries, and decide.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    add("program", type=Path, metavar="PROGRAM", help="a Python file")
    add("arguments", nargs="*", metavar="ARG", help="arguments of the program, after --")
    add("--freshness", required=True, metavar="TIME", help="age that rows may have, '30 s'")
    about = "fewest and most executors (default: %(default)s)"
    add("--executors", default="1:8", metavar="LOW:HIGH", help=about)
    about = "dry-run advises, executors acts (default: %(default)s)"
    add("--mode", default="dry-run", metavar="MODE", help=about)
    about = "see penstock policies; or a .py file (default: %(default)s)"
    add("--policy", default=DEFAULT_POLICY, metavar="NAME", help=about)
    add_pairs(parser, "--param", "parameter of the policy")
    add_pairs(parser, "--guard", "guard, see penstock policies --guards")
    about = "time between decisions (default: %(default)g)"
    add("--interval", type=float, default=15.0, metavar="S", help=about)
    add("--out", type=Path, metavar="DIR", help="run directory (default: runs/attach-...)")


def run(args: argparse.Namespace) -> int:
    """Run the program; return its exit code."""
    from penstock.api.attached_program import run_attached  # noqa: PLC0415  (only this command)

    match = re.fullmatch(r"\s*(\d+)\s*:\s*(\d+)\s*", args.executors)
    if match is None:
        raise InputError("--executors", f"cannot be read: {args.executors!r}", "such as 1:8")
    options = {
        "freshness": args.freshness,
        "executors": (int(match[1]), int(match[2])),
        "policy": args.policy,
        "params": parse_pairs(args.param, "--param"),
        "guards": parse_pairs(args.guard, "--guard"),
        "mode": args.mode,
        "interval_s": args.interval,
        "out": args.out,
    }
    return run_attached(args.program, args.arguments, options)
