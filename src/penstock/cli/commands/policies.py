"""`penstock policies`: lists the policies and their parameters."""

import argparse
import json
from typing import Any

from penstock.cli.subcommands import add_command
from penstock.control.registry import find_policy, policies
from penstock.core.frozen_dict import thaw
from penstock.core.guards import Guards
from penstock.core.params import ParamDescription, Params
from penstock.core.policy import Policy
from penstock.reports.text_layout import hang

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
        listed = [_params_to_json(Guards)]
        print(json.dumps(listed[0], indent=2) if args.json else "\n".join(_params_lines(Guards)))
        return 0
    chosen = [find_policy(name) for name in args.names] or list(policies().values())
    if args.json:
        print(json.dumps([_to_json(policy) for policy in chosen], indent=2))
    else:
        print("\n\n".join(_text(policy) for policy in chosen))
    return 0


def _text(policy: Policy) -> str:
    lines = [hang(policy.name, policy.summary, 15), hang("", policy.paper, 15)]
    return "\n".join(lines + _params_lines(policy.params))


def _params_lines(params: type[Params]) -> list[str]:
    return [_param_line(described) for described in params.describe()]


def _param_line(described: ParamDescription) -> str:
    spec = described.spec
    notes = "; ".join(part for part in (spec.unit, spec.bounds) if part)
    default = _default(described)
    value = f"{described.name}={default}" if default is not None else described.name
    return hang(f"  {value}", f"{spec.doc}{f' ({notes})' if notes else ''}", 33)


def _default(described: ParamDescription) -> Any:
    value = described.default
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    return None if value is None or value == {} else value


def _to_json(policy: Policy) -> dict[str, Any]:
    return {
        "name": policy.name,
        "summary": policy.summary,
        "paper": policy.paper,
        "reads": policy.reads,
        "reacts": policy.reacts,
        "measures": list(policy.measures),
        "params": _params_to_json(policy.params),
    }


def _params_to_json(params: type[Params]) -> list[dict[str, Any]]:
    return [
        {
            "name": d.name,
            "type": d.type,
            "default": thaw(d.default),
            "doc": d.spec.doc,
            "unit": d.spec.unit,
            "bounds": d.spec.bounds,
        }
        for d in params.describe()
    ]
