"""TERM, NO_COLOR and COLUMNS decide what a terminal shows; a real one is asked, too."""

import fcntl
import io
import os
import pty
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

import pytest
from tests.builders import op, snap

from penstock.reports.live_view import LiveView
from penstock.reports.screen import Screen, restore
from penstock.reports.terminal import can_redraw, has_styles, terminal_size
from penstock.reports.text_charts import chart_width
from penstock.reports.text_layout import text_width
from penstock.runs.observer import RunProgress, StopRequest

BOLD = "\x1b[1m"
PROGRESS = RunProgress(second=30.0, duration_s=120.0, snapshot=snap(op("resize"), offered=8.0))


class Terminal:
    """A pseudo-terminal: a stream to write to, and what arrived at the other end."""

    def __init__(self, columns: int, lines: int) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        self.stream: TextIO = os.fdopen(slave, "w")

    def read(self) -> str:
        self.stream.flush()
        return os.read(self._master, 1 << 16).decode()

    def close(self) -> None:
        self.stream.close()
        os.close(self._master)


@pytest.fixture(autouse=True)
def usual_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for variable in ("NO_COLOR", "COLUMNS", "LINES"):
        monkeypatch.delenv(variable, raising=False)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    opened = Terminal(columns=57, lines=13)
    yield opened
    opened.close()


def test_a_terminal_is_redrawn_with_styles_in_its_own_size(terminal: Terminal) -> None:
    assert can_redraw(terminal.stream) and has_styles(terminal.stream)
    assert terminal_size(terminal.stream) == (57, 13)


def test_a_file_is_neither(tmp_path: Path) -> None:
    with (tmp_path / "log").open("w") as stream:
        assert not can_redraw(stream) and not has_styles(stream)
        assert terminal_size(stream) == (100, 40)
    assert terminal_size(io.StringIO()) == (100, 40)


@pytest.mark.parametrize(
    ("columns", "width"), [("44", 44), ("0", 57), ("-3", 57), ("wide", 57), ("", 57)]
)
def test_columns_take_precedence_if_they_are_a_number(
    terminal: Terminal, columns: str, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal_size(terminal.stream).columns == width


@pytest.mark.parametrize("columns", [30, 44, 90])
def test_text_and_charts_are_as_wide_as_columns(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    assert text_width() == columns
    assert chart_width(margin=0) == columns


def test_the_live_view_keeps_to_columns_and_lines(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("NO_COLOR", "1")
    with Screen(LiveView("a pipeline with a long name"), StopRequest(), terminal.stream) as screen:
        screen.show_progress(PROGRESS)
        drawn = terminal.read().partition("\x1b[J")[2]
    assert max(map(len, drawn.splitlines())) < 40


@pytest.mark.parametrize(("value", "is_bold"), [(None, True), ("", True), ("1", False)])
def test_no_color_leaves_out_styles_but_not_the_drawing(
    terminal: Terminal, value: str | None, is_bold: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if value is not None:
        monkeypatch.setenv("NO_COLOR", value)
    with Screen(LiveView("images"), StopRequest(), terminal.stream) as screen:
        screen.show_progress(PROGRESS)
        drawn = terminal.read()
    assert (BOLD in drawn) is is_bold
    assert "\x1b[J" in drawn and "resize" in drawn


def test_a_dumb_terminal_gets_no_escape_sequence(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "dumb")
    with Screen(LiveView("images"), StopRequest(), terminal.stream) as screen:
        screen.show_progress(PROGRESS)
        screen.say("starting Spark")
    restore(terminal.stream)
    assert terminal.read() == "starting Spark\r\n"


def test_the_cursor_comes_back_on_other_terminals(terminal: Terminal) -> None:
    restore(terminal.stream)
    assert terminal.read() == "\x1b[?25h\r\n"


@pytest.mark.slow
@pytest.mark.parametrize("columns", ["1", "20", "60", "wide"])
def test_commands_work_at_any_width(columns: str) -> None:
    environment = os.environ | {"COLUMNS": columns}
    for command in (["--help"], ["policies"], ["workload", "cosine"]):
        done = subprocess.run(
            [sys.executable, "-m", "penstock", *command],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "\x1b" not in done.stdout
