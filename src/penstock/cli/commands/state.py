"""`penstock state`: inspects and checks the keyed state of operators."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

from penstock.cli.subcommands import add_group, add_verb

EXAMPLES = """\
examples:
  penstock state ls runs/words                    operators, rows, size, slices
  penstock state show runs/words penstock         the state of the key "penstock"
  penstock state show runs/bids '[17, 3]'         a key of two columns, as JSON
  penstock state check runs/words                 read every byte; exit code 1 if damaged

The run may be live: the output shows the state after its last batch. check also reads the batch
records.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its verbs."""
    verbs = add_group(
        commands,
        "state",
        summary="inspect and check the state of operators",
        description="Inspect the keyed state of operators, and check it for damage.",
        examples=EXAMPLES,
    )
    _add_verb(verbs, "ls", "list operators with state: rows, size, slices, watermark", run_ls)
    show = _add_verb(verbs, "show", "show the state of a key", run_show)
    show.add_argument("key", metavar="KEY", help="one value, or a JSON list for several columns")
    show.add_argument("--operator", help="operator, if several have state")
    _add_verb(verbs, "check", "read every byte; exit code 1 if damaged", run_check)


def _add_verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    verb = add_verb(verbs, name, summary, EXAMPLES, run)
    verb.add_argument("run_directory", metavar="RUN", type=Path, help="run directory")
    return verb


# Each verb imports what it needs: Arrow takes long to load, and other commands do not need it.


def run_ls(args: argparse.Namespace) -> int:
    """List operators with state."""
    from penstock.engines.spark.state_reader import find_states  # noqa: PLC0415
    from penstock.reports.state_text import list_text, to_json  # noqa: PLC0415

    states = find_states(args.run_directory)
    if args.json:
        print(json.dumps([to_json(state) for state in states], indent=2))
    else:
        print(list_text(states))
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Show the state of a key."""
    from penstock.engines.spark.state_reader import lookup  # noqa: PLC0415
    from penstock.reports.state_text import rows_text  # noqa: PLC0415
    from penstock.runs.state_inspection import find_state, parse_key  # noqa: PLC0415

    state = find_state(args.run_directory, args.operator)
    rows = lookup(args.run_directory, state.operator, parse_key(args.key, state))
    print(json.dumps(rows, default=str, indent=2) if args.json else rows_text(rows, state))
    return 0 if rows else 1


def run_check(args: argparse.Namespace) -> int:
    """List all damage."""
    from penstock.reports.state_text import damage_json, damage_text  # noqa: PLC0415
    from penstock.runs.state_inspection import check_states  # noqa: PLC0415

    damage = check_states(args.run_directory)
    print(json.dumps(damage_json(damage), indent=2) if args.json else damage_text(damage))
    return 1 if any(damage.values()) else 0
