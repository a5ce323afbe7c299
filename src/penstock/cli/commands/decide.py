"""`penstock decide`: prints what a policy decides for given snapshots, and why."""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.cli.options import parse_pairs
from penstock.cli.subcommands import add_command
from penstock.control.decider import Decider
from penstock.control.registry import find_policy
from penstock.core.guards import Guards
from penstock.errors import InputError
from penstock.files.text import explain_os_error
from penstock.reports.decision_text import explain
from penstock.runs.snapshot_lines import read_snapshots

EXAMPLES = """\
examples:
  penstock decide --policy ds2 run.jsonl
  penstock decide --policy threshold --param t_out=500 run.jsonl
  penstock decide --policy ds2 --guard overprovision=1.2 --guard budget=80 --explain run.jsonl
  penstock decide --policy ./my_policy.py - < run.jsonl

Each line of FILE is one snapshot as a JSON object; each line of output is the decision for it.
Without --guard the decision is the policy's proposal. With any --guard, the operators' bounds
apply as well. Guards with memory (cool-downs) assume that every decision is applied.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "decide",
        summary="print what a policy decides for given snapshots, and why",
        description="Read snapshots, print one decision per line.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument(
        "file", metavar="FILE", help="file with one snapshot per line; - for standard input"
    )
    parser.add_argument(
        "--policy", required=True, metavar="NAME", help="see penstock policies; or a .py file"
    )
    parser.add_argument(
        "--param", action="append", default=[], metavar="K=V", help="parameter of the policy"
    )
    parser.add_argument(
        "--guard", action="append", default=[], metavar="K=V", help="see penstock policies --guards"
    )
    parser.add_argument(
        "--explain", action="store_true", help="print the reasons as text instead of JSON"
    )


def run(args: argparse.Namespace) -> int:
    """Decide line by line, so that an open pipe gets each decision at once."""
    policy = find_policy(args.policy)
    params = policy.params.parse(parse_pairs(args.param, "--param"), f"parameter of {policy.name}")
    guards = Guards.parse(parse_pairs(args.guard, "--guard"), "guard") if args.guard else None
    decider = Decider(policy, params, guards)
    with _lines(args.file) as (where, lines):
        seen = 0
        for place, snapshot in read_snapshots(lines, where):
            try:
                decision = decider.decide(snapshot)
            except InputError as error:
                raise error.at(place) from None
            if decision.is_change:
                decider.note_applied(decision)
            if args.explain:
                text = explain(decision, snapshot, policy.measures, guarded=guards is not None)
                print(("\n" if seen else "") + text, flush=True)
            else:
                print(json.dumps(decision.to_json()), flush=True)
            seen += 1
        if not seen:
            raise InputError("", "contains no snapshot", "write one JSON object per line", where)
    return 0


@contextmanager
def _lines(file: str) -> Iterator[tuple[str, Iterable[str]]]:
    try:
        if file == "-":
            yield "stdin", sys.stdin
            return
        with Path(file).open(encoding="utf-8") as stream:
            yield file, stream
    except FileNotFoundError:
        raise InputError("", "there is no such file", where=file) from None
    except (OSError, ValueError) as error:
        raise InputError("", f"cannot be read: {explain_os_error(error)}", where=file) from None
