"""`penstock policies`: lists the policies and their parameters."""

import argparse
import json

from penstock.cli.subcommands import add_command
from penstock.control.registry import find_policy, policies
from penstock.core.guards import Guards
from penstock.reports.policy_text import params_json, params_text, policy_json, policy_text

EXAMPLES = """\
examples:
  penstock policies              all policies
  penstock policies ds2 dhalion  these two
  penstock policies --guards     the guards, which apply to every policy
  penstock policies --json       the same as JSON
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command."""
    parser = add_command(
        commands,
        "policies",
        summary="list all policies and their parameters",
        description="List all policies and their parameters.",
        examples=EXAMPLES,
        run=run,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="list these policies only")
    parser.add_argument(
        "--guards", action="store_true", help="list the guards instead of the policies"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Print the list."""
    if args.guards:
        text = "\n".join(params_text(Guards))
        print(json.dumps(params_json(Guards), indent=2) if args.json else text)
        return 0
    chosen = [find_policy(name) for name in args.names] or list(policies().values())
    if args.json:
        print(json.dumps([policy_json(policy) for policy in chosen], indent=2))
    else:
        print("\n\n".join(policy_text(policy) for policy in chosen))
    return 0
