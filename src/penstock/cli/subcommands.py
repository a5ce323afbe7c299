"""Declares commands and their verbs, such as `penstock topics ls`, with the shared options."""

import argparse
from collections.abc import Callable

from penstock.cli.options import log_options

Run = Callable[[argparse.Namespace], int]


def add_command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    *,
    summary: str,
    description: str,
    examples: str,
    run: Run,
) -> argparse.ArgumentParser:
    """Add a command without verbs; the caller adds its arguments."""
    parser = commands.add_parser(
        name, help=summary, description=description, epilog=examples, parents=[log_options()]
    )
    parser.set_defaults(run=run)
    return parser


def add_group(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    *,
    summary: str,
    description: str,
    examples: str,
) -> "argparse._SubParsersAction[argparse.ArgumentParser]":
    """Add a command with verbs; the caller adds the verbs."""
    parser = commands.add_parser(name, help=summary, description=description, epilog=examples)
    return parser.add_subparsers(metavar="VERB", required=True)


def add_verb(
    verbs: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    summary: str,
    examples: str,
    run: Run,
) -> argparse.ArgumentParser:
    """Add a verb with `--json`; the caller adds its other arguments."""
    description = f"{summary[0].upper()}{summary[1:]}."
    verb = add_command(
        verbs, name, summary=summary, description=description, examples=examples, run=run
    )
    verb.add_argument("--json", action="store_true", help="print JSON")
    return verb
