"""`penstock topics`: inspects and checks topics."""

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

from penstock.cli.subcommands import add_group, add_verb

EXAMPLES = """\
examples:
  penstock topics ls runs/mine                         all topics of a run, one line each
  penstock topics show runs/mine/topics/images         columns, readers and writers of one topic
  penstock topics tail runs/mine/topics/images -n 20   the last 20 rows
  penstock topics tail runs/mine/topics/images --follow --json | jq .id
  penstock topics check runs/mine                      read every byte; exit code 1 if damaged

DIR is a topic, a directory of topics, or a run. For a run, check also reads the batch records.
"""


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
    about = "number of rows (default: %(default)s)"
    tail.add_argument("-n", type=int, default=10, metavar="N", help=about)
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
    from penstock.runs.topic_inspection import find_topics  # noqa: PLC0415

    topics = [read_figures(topic) for topic in find_topics(args.directory)]
    if args.json:
        print(json.dumps([to_json(topic) for topic in topics], indent=2))
    else:
        print(list_text(topics, time.time()))
    return 0


def run_show(args: argparse.Namespace) -> int:
    """Show each topic in detail."""
    from penstock.reports.topic_text import read_figures, show_text, to_json  # noqa: PLC0415
    from penstock.runs.topic_inspection import find_topics  # noqa: PLC0415

    topics = [read_figures(topic) for topic in find_topics(args.directory)]
    if args.json:
        print(json.dumps([to_json(topic) for topic in topics], indent=2))
    else:
        print("\n\n".join(show_text(topic, time.time()) for topic in topics))
    return 0


def run_tail(args: argparse.Namespace) -> int:
    """Print the last rows of one topic, and new ones with --follow."""
    from penstock.reports.topic_rows import RowPrinter  # noqa: PLC0415
    from penstock.runs.topic_inspection import follow_rows, open_topic  # noqa: PLC0415

    topic = open_topic(args.directory)
    printer = RowPrinter(topic.schema, args.json)
    for rows in follow_rows(topic, args.n, is_endless=args.follow):
        printer.show(topic, rows.start, rows.stop)
    return 0


def run_check(args: argparse.Namespace) -> int:
    """List all damage."""
    from penstock.reports.topic_text import damage_json, damage_text  # noqa: PLC0415
    from penstock.runs.topic_inspection import check_topics  # noqa: PLC0415

    damage = check_topics(args.directory)
    print(json.dumps(damage_json(damage), indent=2) if args.json else damage_text(damage))
    return 1 if any(damage.values()) else 0
