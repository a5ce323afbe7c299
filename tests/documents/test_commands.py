"""Every command that a page shows exists, with the options that are shown."""

import argparse
import re
from pathlib import Path

import pytest
from tests.documents.pages import (
    all_pages,
    blocks_of,
    console_examples,
    inline_commands,
    read_page,
    shell_commands,
)

from penstock.cli.main import build_parser


def shown_commands(page: str) -> list[list[str]]:
    """The arguments of each `penstock` in the code blocks of a page."""
    scripts = [block.text for block in blocks_of(page, "sh", "shell")]
    for block in blocks_of(page, "console"):
        scripts += [command for command, _ in console_examples(block.text)]
    commands = [words for script in scripts for words in shell_commands(script)]
    return [words[1:] for words in commands if Path(words[0]).name == "penstock"]


def refusal(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the parser of the command line says against these arguments; empty: nothing."""
    try:
        build_parser().parse_args(arguments)
    except SystemExit as end:
        return capsys.readouterr().err if end.code else ""
    return ""


def find_parser(words: list[str]) -> argparse.ArgumentParser | None:
    """The parser of a command and its verb; None if there is no such command."""
    parser = build_parser()
    for word in words:
        groups = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
        if not groups or not re.fullmatch(r"[a-z-]+", word):
            break
        if word not in groups[0].choices:
            return None
        parser = groups[0].choices[word]
    return parser


@pytest.mark.parametrize("page", all_pages())
def test_commands_parse(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    refusals = {" ".join(words): refusal(words, capsys) for words in shown_commands(page)}
    assert {command: text for command, text in refusals.items() if text} == {}


@pytest.mark.parametrize("page", [page for page in all_pages() if page != "CHANGELOG.md"])
def test_commands_in_the_prose_exist(page: str) -> None:
    for command in inline_commands(read_page(page)):
        words = command.split()[1:]
        parser = find_parser([word for word in words if not word.startswith("-")])
        assert parser is not None, command
        known = set(parser._option_string_actions)
        options = {word.partition("=")[0] for word in words if word.startswith("--")}
        assert options <= known, command


def test_a_wrong_command_is_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert "--polisy" in refusal(["simulate", "--polisy", "ds2"], capsys)
    assert refusal(["simulate", "--policy", "ds2", "--minutes", "5"], capsys) == ""
    assert find_parser(["simulat"]) is None
    assert find_parser(["topics", "tail", "RUN"]) is not None
