"""`penstock top`: fits 80 columns, prints lines without a terminal, quits with q and Ctrl-C."""

import fcntl
import io
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
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from tests.dashboard.pages import make_host_run, make_instance_run

from penstock.cli.commands import top
from penstock.cli.main import main
from penstock.control.loop import Tick
from penstock.engines.events import FailedEvent
from penstock.files.lock import Lock
from penstock.lab.simulation import run_simulation
from penstock.reports.top_view import RunWatch, draw_top
from penstock.runs.run_directory import begin_run
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
        assert "no decision: " in text or "no change: " in text
        assert "health: no problems are known" in text


def draw(run: Path, width: int = 80, height: int = 30) -> str:
    """Return the view of a run as text."""
    watch = RunWatch(run)
    watch.refresh()
    console = Console(width=width, height=height, record=True, file=io.StringIO())
    console.print(draw_top(watch, width, height))
    return console.export_text()


def write_run(directory: Path, ticks: Sequence[Tick]) -> Path:
    """Write a run of these ticks."""
    prepared = prepare_simulation(SimulationSpec(minutes=30))
    with begin_run(directory, prepared.spec.to_json(), prepared.header()) as journal:
        for tick in ticks:
            journal.write(tick)
    return directory


def test_shares_bottleneck_executors_and_health_are_shown(tmp_path: Path) -> None:
    (tick, *_) = prepare_simulation(SimulationSpec(minutes=30)).ticks()
    failed = FailedEvent(at=1.0, operator="mapper", error="no machine is free")
    status = replace(tick.status, executors=4, executors_requested=5, events=(failed,))
    text = draw(write_run(tmp_path / "run", [replace(tick, status=status)]))
    source = tick.snapshot.operators["source"]
    shares = (source.busy, source.idle, source.backpressured)
    words = " +".join("-" if share is None else f"{100 * share:.0f} %" for share in shares)
    assert re.search(rf"\u25b2 source .* {words} ", text)
    assert "idle" in text and "blocked" in text and "\u25b2 sink" not in text
    assert re.search(r"executors +4\b", text)
    assert "health: 1 failures of operators or changes" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_reason_for_no_change_is_shown(tmp_path: Path) -> None:
    ticks = [*prepare_simulation(SimulationSpec(minutes=30)).ticks()]
    kept = next(t for t in ticks if t.decision is not None and not t.decision.is_change)
    text = draw(write_run(tmp_path / "run", ticks[: ticks.index(kept) + 1]))
    target = next(iter(kept.decision.targets.values()))
    assert "no change: " in text and str(target.proposal_reason) in text


def test_hosts_and_instances_are_shown(tmp_path: Path) -> None:
    make_host_run(tmp_path / "hub")
    text = draw(tmp_path / "hub")
    for words in ("hosts", "highest load of a host", "slices that move"):
        assert words in text
    make_instance_run(tmp_path / "alone")
    text = draw(tmp_path / "alone")
    assert "instances that the load needs" in text[:2000] and "messages per tick" in text


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
    # a size in the environment would count in place of the terminal's
    kept = {name: text for name, text in os.environ.items() if name not in ("COLUMNS", "LINES")}
    environment = {**kept, "TERM": "xterm"}
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


def test_it_follows_the_size_of_its_terminal(run: Path) -> None:
    terminal, process = start(run)
    try:
        data = read_until(terminal, b"q quits")
        assert longest_line(data) <= 80
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 130, 0, 0))
        until = time.monotonic() + 30
        while longest_line(data) <= 90:  # lines use the new width
            assert time.monotonic() < until
            data = read_until(terminal, b"q quits")
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 12, 60, 0, 0))
        last = b""
        while not last or longest_line(last[last.rindex(b"q1 under") :]) > 60:
            assert time.monotonic() < until + 30
            drain(terminal)  # what was drawn before
            last = read_until(terminal, b"q quits")
    finally:
        process.kill()
        process.wait()
        os.close(terminal)


def drain(descriptor: int) -> None:
    """Drop what was written so far."""
    while select.select([descriptor], [], [], 0)[0]:
        os.read(descriptor, 65536)


def longest_line(data: bytes) -> int:
    """Return the length of the longest drawn line, without trailing spaces."""
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", data.decode(errors="replace"))
    return max(len(line.rstrip()) for line in re.split(r"[\r\n]+", text))
