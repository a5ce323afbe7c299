"""Completes words of commands in a shell: names that Penstock knows, files and directories."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

import shtab

from penstock.control.registry import policies
from penstock.engines.simulator import library
from penstock.nexmark.queries import QUERIES
from penstock.runs.build_args import demo_names
from penstock.workloads.registry import PATTERNS

#: What a shell offers for one argument: a function or a pattern per shell.
Completion = dict[str, Any]
_DIRECTORIES, _FILES = ("RUN", "DIR"), ("FILE", "SPEC")


def completion_script(parser: argparse.ArgumentParser, shell: str) -> str:
    """Return the script that completes the commands of a parser; the parser is changed."""
    completions = _name_completions()
    for command, action in _actions(parser):
        key = action.option_strings[-1] if action.option_strings else str(action.metavar)
        name = command.partition(" ")[2]
        completion = completions.get(f"{name} {key}") or completions.get(key) or _path(action)
        if completion is not None and action.choices is None:
            action.complete = completion  # type: ignore[attr-defined]
    return str(shtab.complete(parser, shell))


def _name_completions() -> dict[str, Completion]:
    """Return completions by option or positional, some for one command only."""
    policy_names, workloads, queries = tuple(policies()), tuple(PATTERNS), tuple(QUERIES)
    return {
        "--policy": _names("policies", policy_names, "*.py"),
        "policies NAME": _names("known_policies", policy_names),
        "--workload": _names("workloads", workloads),
        "workload NAME": _names("workloads", workloads),
        "WORKLOAD": _names("workloads", workloads),
        "--engine": _names("profiles", library.profiles(), "*.toml"),
        "--query": _names("queries", queries),
        "simulate --query": _names("simulated_pipelines", library.pipelines(), "*.toml"),
        "PIPELINE": _names("pipelines", (*demo_names(), *queries), "*.py"),
    }


def _names(title: str, names: Sequence[str], pattern: str = "") -> Completion:
    """Offer names, and files of a pattern with the directories on the way to them."""
    words, function = " ".join(names), f"_penstock_{title}"
    bash, zsh = [f'compgen -W "{words}" -- "$1"'], [f"'{title}:{title}:({words})'"]
    if pattern:
        # a `_file` in the name of the function makes shtab's script add a slash to directories
        function += "_file"
        bash += [f"compgen -f -X '!{pattern}' -- \"$1\"", 'compgen -d -- "$1"']
        zsh.append(f"'files:file:_files -g \"{pattern}\"'")
    return {
        "bash": function,
        "zsh": function,
        "tcsh": f"`echo {words}`",
        "preamble": {
            "bash": f"{function}() {{\n  {'; '.join(bash)}\n}}",
            "zsh": f"{function}() {{\n  _alternative {' '.join(zsh)}\n}}",
        },
    }


def _path(action: argparse.Action) -> Completion | None:
    """Offer files or directories where the help shows FILE, RUN or the like."""
    shown = str(action.metavar or "")
    if shown in _DIRECTORIES:
        return dict(shtab.DIRECTORY)
    return dict(shtab.FILE) if shown.startswith(_FILES) else None


def _actions(parser: argparse.ArgumentParser) -> Iterator[tuple[str, argparse.Action]]:
    """Yield every argument with its command, such as `penstock lab run`."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from _actions(inner)
        else:
            yield parser.prog, action
