"""`penstock doctor`: checks whether this machine has what a run on Spark needs."""

import argparse
import json
from pathlib import Path

from penstock.cli.subcommands import add_command
from penstock.reports.machine_text import machine_json, machine_text
from penstock.runs.machine_check import check_machine, has_problem
from penstock.runs.machine_facts import gather_facts

EXAMPLES = """\
examples:
  penstock doctor            Java, Python, packages, memory, disk, network
  penstock doctor --json     the same as JSON

The current directory is checked, because runs are in ./runs by default. Nothing is left in it.

exit codes:
  0  a run on Spark can start; there may be warnings
  1  there is a problem
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "doctor",
        summary="check what this machine has for runs on Spark",
        description="Check whether this machine has what a run on Spark needs.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the findings; exit code 1 if there is a problem."""
    findings = check_machine(gather_facts(Path.cwd()))
    if args.json:
        print(json.dumps(machine_json(findings), indent=2))
    else:
        print(machine_text(findings))
    return 1 if has_problem(findings) else 0
