"""What commands print fits into 80 columns."""

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.cli.main import build_parser, main
from penstock.cli.parser import fold


def parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for inner in action.choices.values():
                yield from parsers(inner)


def too_wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > 80]


@pytest.fixture(autouse=True)
def eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_every_help_text_fits() -> None:
    texts = {parser.prog: parser.format_help() for parser in parsers(build_parser())}
    assert {name: too_wide(text) for name, text in texts.items() if too_wide(text)} == {}
    # folding loses no word
    words = re.findall(r"\S+", build_parser("run").epilog or "")
    assert set(words) <= set(re.findall(r"\S+", build_parser("run").format_help()))


@pytest.mark.parametrize(
    "argv",
    [
        ["policies"],
        ["policies", "--guards"],
        ["workload"],
        ["workload", "cosine"],
        ["simulate", "--minutes", "20", "--no-out", "--hindsight"],
        ["explain", "run"],
        ["replay", "run", "--policy", "ds2"],
    ],
)
def test_every_table_fits(
    argv: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if "run" in argv:
        main(["simulate", "--minutes", "10", "--policy", "dhalion", "--out", "run"])
        capsys.readouterr()
    assert main(argv) == 0
    assert too_wide(capsys.readouterr().out) == []


def test_examples_are_folded_behind_their_commands() -> None:
    text = "examples:\n  penstock run images --policy ds2     what it does\n\nSome prose here."
    assert list(fold(text, 38)) == [
        "examples:",
        "  penstock run images --policy ds2",
        "      what it does",
        "",
        "Some prose here.",
        "",
    ]
