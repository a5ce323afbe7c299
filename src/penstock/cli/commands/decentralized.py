"""`penstock decentralized`: scaling without a controller, checked, simulated, in processes."""

import argparse
import json
import sys
from pathlib import Path

from penstock.cli.decentralized_run import add_run_verb
from penstock.cli.decentralized_simulate import add_simulate_verb
from penstock.cli.options import check_at_least_1
from penstock.cli.subcommands import add_group, add_verb
from penstock.decentralized.checker.configuration import CheckConfig, plant_bug
from penstock.decentralized.checker.suite import (
    CheckRun,
    SuiteCheck,
    run_check,
    standard_suite,
)
from penstock.errors import InputError
from penstock.files.text import is_file, read_text, write_text
from penstock.reports.check_text import (
    check_json,
    check_text,
    replace_block,
    suite_tables,
)
from penstock.reports.search_progress import SearchLine
from penstock.reports.tables import as_text

EXAMPLES = """\
examples:
  penstock decentralized check                            explore all interleavings
  penstock decentralized check --bug no-fifo              plant a bug, see the shortest trace
  penstock decentralized simulate                         simulate the setup of the paper
  penstock decentralized simulate --seeds 50              means with confidence intervals
  penstock decentralized run                              real processes, 30 seconds
"""
CHECK_EXAMPLES = """\
Explores every order of messages, decisions and records in a small pipeline whose nodes duplicate
themselves and stop. Prints the shortest trace to a violation.

examples:
  penstock decentralized check                                     3 operators, 1 to 2 nodes each
  penstock decentralized check --instances 1,2,3 --max-instances 3 --actions 2 --records 0
  penstock decentralized check --bug as-printed                    the paper's pseudo-code
  penstock decentralized check --all --markdown docs/decentralized.md

bugs: no-fifo no-acks one-branch-ack no-to-delete no-keeper sides-by-sets start-without-departed
drain-to-any decide-while-busy as-printed

exit codes:
  0  the invariants hold; with --all, and every planted bug was found
  1  an invariant is violated; with --all, a result is not as expected
  2  wrong options
"""
MAX_STATES = 5_000_000


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the command with its verbs."""
    verbs = add_group(
        commands,
        "decentralized",
        summary="scaling without a controller",
        description="Scaling without a controller: every node decides alone.",
        examples=EXAMPLES,
    )
    _add_check(verbs)
    add_simulate_verb(verbs)
    add_run_verb(verbs)


def _add_check(verbs: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    about = "check the scaling protocol in every interleaving"
    check = add_verb(verbs, "check", about, CHECK_EXAMPLES, run)
    for option, default, meaning in (
        ("--operators", 3, "operators of the pipeline"),
        ("--max-instances", 2, "nodes that an operator can have at once"),
        ("--actions", 2, "duplications and deletions that are under way at once"),
        ("--records", 1, "records that are in the pipeline at once"),
        ("--max-states", MAX_STATES, "give up after so many states"),
    ):
        about = f"{meaning} (default: %(default)s)"
        check.add_argument(option, metavar="N", type=int, default=default, help=about)
    about = "nodes of each operator at the beginning, such as 1,2,2 (default: 1 each)"
    check.add_argument("--instances", metavar="N,N,...", help=about)
    check.add_argument("--bug", metavar="NAME", help="leave out a rule of the protocol")
    about = "explore every state, without symmetry and partial-order reduction"
    check.add_argument("--full", action="store_true", help=about)
    about = "do not give the name of a stopped node to a new one: every name is used once"
    check.add_argument("--no-reuse", action="store_true", help=about)
    about = "run the standard checks, and every planted bug"
    check.add_argument("--all", action="store_true", help=about)
    about = "write the tables of --all into a page"
    check.add_argument("--markdown", metavar="FILE", type=Path, help=about)


def run(args: argparse.Namespace) -> int:
    """Check one configuration, or all of the suite, and print what was found."""
    check_at_least_1("--max-states", args.max_states)
    if args.markdown is not None and not args.all:
        raise InputError("--markdown", "needs --all")
    if args.all:
        return _run_suite(args)
    check = SuiteCheck(name="check", config=_read_config(args), bug=args.bug or "")
    checked = _run(check, args.max_states)
    print(json.dumps(check_json(checked), indent=2) if args.json else check_text(checked))
    return 0 if checked.verdict.violation is None else 1


def _run_suite(args: argparse.Namespace) -> int:
    runs = [_run(check, args.max_states) for check in standard_suite()]
    tables = suite_tables(runs)
    if args.markdown is not None:
        page = read_text(args.markdown) if is_file(args.markdown) else ""
        write_text(args.markdown, replace_block(page, tables), "--markdown")
        print(f"wrote {args.markdown}", file=sys.stderr)
    if args.json:
        print(json.dumps([check_json(run) for run in runs], indent=2))
    else:
        print("\n\n".join(as_text(table) for table in tables))
    return 0 if all(run.is_as_expected for run in runs) else 1


def _run(check: SuiteCheck, max_states: int) -> CheckRun:
    with SearchLine(check.name) as line:
        return run_check(check, max_states, line.show)


def _read_config(args: argparse.Namespace) -> CheckConfig:
    config = CheckConfig(
        instances=_read_instances(args.instances, args.operators),
        max_instances=args.max_instances,
        actions=args.actions,
        records=args.records,
        reuses_names=not args.no_reuse,
        has_symmetry=not args.full,
        has_partial_order=not args.full,
    )
    return config if args.bug is None else plant_bug(config, args.bug)


def _read_instances(text: str | None, operators: int) -> tuple[int, ...]:
    if text is None:
        return (1,) * operators
    try:
        instances = tuple(int(part) for part in text.split(","))
    except ValueError:
        problem = f"must be whole numbers with commas, got {text!r}"
        raise InputError("--instances", problem, "such as 1,2,2") from None
    if len(instances) != operators:
        problem = f"gives {len(instances)} operators, --operators is {operators}"
        raise InputError("--instances", problem)
    return instances
