"""The line that tells how far many runs have come."""

import io
import itertools
from collections.abc import Iterator

import pytest

from penstock.core.progress import WorkProgress
from penstock.reports.progress import ProgressBar


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def usual_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")


def seconds() -> Iterator[float]:
    """A clock that goes on by a second whenever somebody looks at it."""
    yield from itertools.count(0.0)


def show(stream: io.StringIO, total: int, kept: int = 0) -> str:
    clock = seconds()
    with ProgressBar("grid", stream, lambda: next(clock)) as bar:
        for done in range(total - kept + 1):
            bar.show(WorkProgress(total=total, kept=kept, done=done))
    return stream.getvalue()


def test_a_file_gets_one_line_for_each_tenth() -> None:
    lines = show(io.StringIO(), 200).splitlines()
    assert len(lines) == 10
    assert lines[0].startswith("grid:  10 %, 20 of 200 ") and lines[0].endswith(" left")
    assert lines[-1].startswith("grid: 100 %, 200 of 200 in 0:")


def test_a_terminal_gets_a_bar_on_one_line() -> None:
    shown = show(Terminal(), 4)
    assert shown.count("\n") == 1 and shown.endswith("\n")
    steps = shown.split("\r")[1:]
    assert [step.count("#") for step in steps] == [0, 7, 15, 22, 30]
    assert "left" not in steps[0] and "0:06 left" in steps[1]


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    shown = show(Terminal(), 200)
    assert "\r" not in shown and len(shown.splitlines()) == 10


def test_the_bar_is_narrower_than_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "24")
    steps = show(Terminal(), 4).rstrip("\n").split("\r")[1:]
    assert {len(step) for step in steps} == {23}


def test_what_is_there_already_is_not_part_of_the_way() -> None:
    lines = show(io.StringIO(), 10, kept=8).splitlines()
    assert lines[0] == "grid: 8 of 10 exist already"
    assert lines[-1].startswith("grid: 100 %, 2 of 2")
    assert show(io.StringIO(), 10, kept=10) == "grid: 10 of 10 exist already\n"


def test_who_interrupts_is_told_that_nothing_is_lost() -> None:
    stream = io.StringIO()
    with pytest.raises(KeyboardInterrupt), ProgressBar("grid", stream):
        raise KeyboardInterrupt
    assert "the same command resumes" in stream.getvalue()
