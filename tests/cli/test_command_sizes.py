"""Modules of commands stay small: they parse options, call a function, and print."""

from pathlib import Path
from statistics import median

from penstock.cli import commands

LINES = {
    path.name: len(path.read_text(encoding="utf-8").splitlines())
    for path in Path(commands.__path__[0]).glob("*.py")
    if path.name != "__init__.py"
}


def test_half_of_the_commands_have_fewer_than_100_lines() -> None:
    assert len(LINES) > 20 and median(LINES.values()) < 100


def test_no_command_has_more_than_200_lines() -> None:
    assert {name: count for name, count in LINES.items() if count > 200} == {}
