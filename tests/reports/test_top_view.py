"""`penstock top`: fits 80 columns, prints lines without a terminal, quits with q and Ctrl-C."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from rich.console import Console

from penstock.cli.commands import top
from penstock.cli.main import main
from penstock.files.lock import Lock
from penstock.lab.simulation import run_simulation
from penstock.reports.top_view import RunWatch, draw_top
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A simulated run of half an hour."""
    directory = tmp_path_factory.mktemp("top") / "run"
    run_simulation(prepare_simulation(SimulationSpec(minutes=30)), directory)
    return directory


@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 12), (120, 40), (40, 10)])
def test_the_view_fits_its_terminal(run: Path, width: int, height: int) -> None:
    watch = RunWatch(run)
    watch.refresh()
    console = Console(width=width, height=height, record=True, file=open(os.devnull, "w"))  # noqa: PTH123, SIM115
    with console.capture() as captured:
        console.print(draw_top(watch, width, height))
    console.file.close()
    lines = captured.get().rstrip("\n").split("\n")
    assert len(lines) <= height and max(map(len, lines)) <= width
    if width >= 80 and height >= 24:
        text = "\n".join(lines)
        last = watch.last_ticks(1)[0]
        assert "q1 under cosine, ds2 on simulated flink  [finished]" in lines[0]
        for name, running in last.status.running.items():
            assert re.search(rf"{name} .*●+ {running}\b", text)
        assert "objective 60 s" in text


def test_lines_without_a_terminal(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["top", str(run)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("q1 under cosine") and lines[-1] == "finished"
    assert sum("source 2" in line for line in lines) >= 5
    assert main(["top", str(run.parent)]) == 2


def test_the_view_is_drawn_until_a_key_ends_it(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = iter(["", "x", "q"])
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(top, "_read_key", lambda _seconds: next(keys))
    assert main(["top", str(run)]) == 0
    assert "q quits" in capsys.readouterr().out and next(keys, None) is None


def start(run: Path) -> tuple[int, subprocess.Popen[bytes]]:
    """Start the command in a terminal of 80 by 24."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    command = [sys.executable, "-m", "penstock", "top", str(run)]
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment,
        start_new_session=True,
    )
    os.close(theirs)
    return ours, process


def read_until(descriptor: int, word: bytes, seconds: float = 30.0) -> bytes:
    """Read the output until a word appears."""
    data, until = b"", time.monotonic() + seconds
    while word not in data and time.monotonic() < until:
        if select.select([descriptor], [], [], 0.2)[0]:
            try:
                data += os.read(descriptor, 65536)
            except OSError:
                break
    assert word in data, data[-500:]
    return data


@pytest.mark.parametrize("how", ["q", "interrupt"])
def test_it_quits_cleanly_while_the_run_goes_on(run: Path, how: str) -> None:
    with Lock(run / "lock"):
        terminal, process = start(run)
        try:
            read_until(terminal, b"q quits")
            if how == "q":
                os.write(terminal, b"q")
            else:
                process.send_signal(signal.SIGINT)
            rest = read_until(terminal, b"\x1b[?1049l")  # the old screen is back
            assert b"Traceback" not in rest
            assert process.wait(20) == 0
        finally:
            process.kill()
            process.wait()
            os.close(terminal)
    (run / "lock").unlink()
