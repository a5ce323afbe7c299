"""`penstock state`: inspects and checks the keyed state of operators."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.cli.subcommands import add_group, add_verb
from penstock.errors import InputError, nearest

if TYPE_CHECKING:
    from penstock.engines.spark.state_reader import StateReader
    from penstock.state.check import StateDamage

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


def run_ls(args: argparse.Namespace) -> int:
    """List operators with state."""
    from penstock.engines.spark.state_reader import find_states  # noqa: PLC0415
    from penstock.reports.state_text import list_text, to_json  # noqa: PLC0415

    found = find_states(args.run_directory)
    print(
        json.dumps([to_json(each) for each in found], indent=2) if args.json else list_text(found)
    )
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Show the state of a key."""
    from penstock.engines.spark.state_reader import find_states, lookup  # noqa: PLC0415
    from penstock.reports.state_text import rows_text  # noqa: PLC0415

    memory = _choose(find_states(args.run_directory), args.operator)
    key = _parse(args.key, memory)
    rows = lookup(args.run_directory, memory.operator, key)
    print(json.dumps(rows, default=str, indent=2) if args.json else rows_text(rows, memory))
    return 0 if rows else 1


def run_check(args: argparse.Namespace) -> int:
    """List all damage."""
    from penstock.engines.spark.recovery.batch_record_check import check_records  # noqa: PLC0415
    from penstock.reports.state_text import damage_json, damage_text  # noqa: PLC0415
    from penstock.state.check import StateDamage  # noqa: PLC0415

    records = check_records(args.run_directory)
    found = {
        name: [StateDamage(file=each.file, problem=each.problem, slices=()) for each in damage]
        for name, damage in records.items()
    }
    found |= _check_memories(args.run_directory, has_damage=bool(records))
    print(json.dumps(damage_json(found), indent=2) if args.json else damage_text(found))
    return 1 if any(found.values()) else 0


def _check_memories(run: Path, *, has_damage: bool) -> "dict[str, list[StateDamage]]":
    """Check the state that intact batch records lead to."""
    from penstock.engines.spark.state_reader import find_states  # noqa: PLC0415

    try:
        return {memory.operator: memory.check() for memory in find_states(run)}
    except InputError:
        if not has_damage:
            raise
        return {}


def _choose(found: "list[StateReader]", name: str | None) -> "StateReader":
    known = {memory.operator: memory for memory in found}
    if name is None and len(found) == 1:
        return found[0]
    if name is None:
        raise InputError("--operator", f"{len(found)} operators have state", f"{', '.join(known)}")
    if name not in known:
        raise InputError("--operator", f"{name!r} has no state", nearest(name, known))
    return known[name]


def _parse(text: str, memory: "StateReader") -> dict[str, Any]:
    """Read a key: its columns in order, at least those that decide on the slice."""
    import pyarrow as pa  # noqa: PLC0415

    least = max(1, len(memory.by))
    values = [text]
    if len(memory.by) > 1 or text.startswith("["):
        try:
            values = json.loads(text)
        except ValueError:
            values = []
    if not isinstance(values, list) or not least <= len(values) <= len(memory.key):
        names = ", ".join(memory.key.names)
        problem = f"must be a JSON list for the columns {names}, got {text!r}"
        raise InputError("KEY", problem, f"at least {', '.join(memory.key.names[:least])}")
    key = {}
    for field, value in zip(memory.key, values, strict=False):
        try:
            key[field.name] = (
                pa.scalar(value).cast(field.type).as_py() if value is not None else None
            )
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            problem = f"column {field.name!r} is {field.type}, got {value!r}"
            raise InputError("KEY", problem) from None
    return key
