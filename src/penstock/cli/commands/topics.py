"""`penstock topics`: inspects and checks topics."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from penstock.cli.subcommands import add_group, add_verb
from penstock.errors import InputError

EXAMPLES = """\
examples:
  penstock topics ls runs/mine                         all topics of a run, one line each
  penstock topics show runs/mine/topics/images         columns, readers and writers of one topic
  penstock topics tail runs/mine/topics/images -n 20   the last 20 rows
  penstock topics tail runs/mine/topics/images --follow --json | jq .id
  penstock topics check runs/mine                      read every byte; exit code 1 if damaged

DIR is a topic, a directory of topics, or a run. For a run, check also reads the batch records.
"""
_LOOK_EVERY_S = 0.2


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its verbs."""
    verbs = add_group(
        commands,
        "topics",
        summary="inspect and check topics",
        description="Inspect topics and their rows, and check them for damage.",
        examples=EXAMPLES,
    )
    _add_verb(verbs, "ls", "list topics: rows, size, age, readers", run_ls)
    _add_verb(verbs, "show", "show columns, retention, readers and writers", run_show)
    tail = _add_verb(verbs, "tail", "show the last rows of one topic", run_tail)
    tail.add_argument(
        "-n", type=int, default=10, metavar="N", help="number of rows (default: %(default)s)"
    )
    tail.add_argument("--follow", action="store_true", help="print new rows until interrupted")
    _add_verb(verbs, "check", "read every byte; exit code 1 if damaged", run_check)


def _add_verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    verb = add_verb(verbs, name, summary, EXAMPLES, run)
    verb.add_argument(
        "directory", metavar="DIR", type=Path, help="topic, directory of topics, or run"
    )
    return verb


# Each verb imports what it needs: Arrow takes long to load, and other commands do not need it.


def run_ls(args: argparse.Namespace) -> int:
    """List topics."""
    from penstock.reports.topic_text import list_text, read_figures, to_json  # noqa: PLC0415

    found = [read_figures(place) for place in _find(args.directory)]
    if args.json:
        print(json.dumps([to_json(each) for each in found], indent=2))
    else:
        print(list_text(found, time.time()))
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Show each topic in detail."""
    from penstock.reports.topic_text import read_figures, show_text, to_json  # noqa: PLC0415

    found = [read_figures(place) for place in _find(args.directory)]
    if args.json:
        print(json.dumps([to_json(each) for each in found], indent=2))
    else:
        print("\n\n".join(show_text(each, time.time()) for each in found))
    return 0


def run_tail(args: argparse.Namespace) -> int:
    """Print the last rows of one topic, and new ones with --follow."""
    from penstock.reports.topic_rows import RowPrinter  # noqa: PLC0415
    from penstock.topics.embedded.topic import Topic  # noqa: PLC0415

    found = _find(args.directory)
    if len(found) > 1:
        names = ", ".join(place.name for place in found)
        raise InputError("DIR", f"contains {len(found)} topics", f"choose one: {names}")
    if args.n < 0:
        raise InputError("-n", f"must be at least 0, got {args.n}")
    topic = Topic.open(found[0])
    printer = RowPrinter(topic.schema, args.json)
    position = max(topic.first, topic.end - args.n)
    while True:
        printer.show(topic, position, topic.end)
        if not args.follow:
            return 0
        position = topic.end
        while topic.refresh() == position:
            time.sleep(_LOOK_EVERY_S)
        position = max(position, topic.first)


def run_check(args: argparse.Namespace) -> int:
    """List all damage."""
    from penstock.engines.spark.recovery.batch_record_check import check_records  # noqa: PLC0415
    from penstock.reports.topic_text import damage_json, damage_text  # noqa: PLC0415
    from penstock.topics.embedded.check import TopicDamage, check_directory  # noqa: PLC0415

    found = {place.name: check_directory(place) for place in _find(args.directory)}
    for name, records in check_records(args.directory).items():
        unknown = range(0)  # which rows a record has named, only the record knows
        found[name] = [TopicDamage(file=r.file, problem=r.problem, rows=unknown) for r in records]
    print(json.dumps(damage_json(found), indent=2) if args.json else damage_text(found))
    return 1 if any(found.values()) else 0


def _find(directory: Path) -> list[Path]:
    from penstock.topics.embedded.description import DESCRIPTION  # noqa: PLC0415

    if not directory.is_dir():
        raise InputError("DIR", f"there is no directory {str(directory)!r}")
    if (directory / DESCRIPTION).is_file():
        return [directory.resolve()]
    for folder in (directory, directory / "topics"):
        if found := sorted(file.parent for file in folder.glob(f"*/{DESCRIPTION}")):
            return found
    hint = f"a topic is a directory with {DESCRIPTION}; give one, their parent, or a run"
    raise InputError("DIR", f"there is no topic in {str(directory)!r}", hint)
