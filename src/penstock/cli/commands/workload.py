"""`penstock workload`: shows offered load over time."""

import argparse
import json
import sys

from penstock.cli.options import add_pairs, add_seed, parse_pairs, read_minutes
from penstock.cli.subcommands import add_command
from penstock.reports.workload_text import list_json, list_text, workload_json, workload_text
from penstock.workloads.expression import parse, write
from penstock.workloads.plot import draw_workload
from penstock.workloads.registry import PATTERNS, find_pattern, make_workload

EXAMPLES = """\
examples:
  penstock workload                                      list all workloads
  penstock workload cosine                               the cosine load of the thesis
  penstock workload random --seed 1073 --json            one rate per minute, as JSON
  penstock workload increase --param spike_up=0.05       add spikes to any workload
  penstock workload "cosine * 0.1 + constant(rate=2e4)"  the sum of two workloads
  penstock workload "constant for 30 then dns" --plot load.svg
  penstock workload trace --param file=tweets.csv --param count=value --param mean=5000
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "workload",
        summary="show a workload: its offered load over time",
        description="Show a workload as a chart with figures, as JSON, or as a picture.",
        examples=EXAMPLES,
        run=run,
    )
    add = parser.add_argument
    about = "workload, or an expression with +, * and then"
    add("name", nargs="?", metavar="NAME", help=about)
    about = "length (default: 140; convergence: 90)"
    add("--minutes", type=read_minutes, metavar="N", help=about)
    add_seed(parser)
    add_pairs(parser, "--param", "parameter of the workload")
    add("--json", action="store_true", help="print JSON with one rate per minute")
    add("--plot", metavar="FILE", help="draw it to a .png, .svg or .pdf file")
    add("--list", action="store_true", help="list all workloads, or NAME, with parameters")


def run(args: argparse.Namespace) -> int:
    """Print or draw the workload."""
    if args.list or not args.name:
        chosen = [find_pattern(args.name)] if args.name else list(PATTERNS.values())
        print(json.dumps(list_json(chosen), indent=2) if args.json else list_text(chosen))
        return 0
    given = parse_pairs(args.param, "--param")
    load = make_workload(args.name, args.minutes, args.seed, given)
    tree = parse(args.name)
    title = f"{write(tree)}, seed {args.seed}"
    if args.plot:
        print(f"picture: {draw_workload(load, title, args.plot)}", file=sys.stderr)
    if args.json:
        print(json.dumps(workload_json(load, tree, args.seed, given)))
    else:
        print(workload_text(load, title))
    return 0
