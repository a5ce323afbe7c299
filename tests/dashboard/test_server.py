"""The server with a real socket: live updates, its end, and the command."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest

from penstock.cli.main import main
from penstock.dashboard import server as serving
from penstock.dashboard.application import MAX_STREAMS
from penstock.dashboard.server import DashboardServer, prepare_dashboard, serve_dashboard
from penstock.runs.run_directory import begin_run
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec


@contextmanager
def running(directory: Path) -> Iterator[str]:
    """Run a server in a thread; yield its address without the token."""
    prepared = prepare_dashboard(directory, port=0)
    thread = threading.Thread(target=prepared.run, daemon=True)
    thread.start()
    try:
        yield prepared.address.partition("#")[0]
    finally:
        prepared.server.should_exit = True
        thread.join(20)
        assert not thread.is_alive()


def test_a_page_hears_of_every_new_tick(tmp_path: Path) -> None:
    prepared = prepare_simulation(SimulationSpec(minutes=2))
    ticks = [*prepared.ticks()]
    with begin_run(tmp_path / "run", prepared.spec.to_json(), prepared.header()) as journal:
        journal.write(ticks[0])
        with (
            running(tmp_path) as address,
            httpx.stream("GET", f"{address}api/events?run=run", timeout=30) as stream,
        ):
            assert stream.headers["content-type"].startswith("text/event-stream")
            assert "content-security-policy" in stream.headers
            lines = stream.iter_lines()
            seen: list[int] = []
            for line in lines:
                if line.startswith("data:"):
                    seen.append(json.loads(line[5:])["ticks"])
                    if len(seen) == 3:
                        break
                    journal.write(ticks[len(seen)])
            assert seen == [1, 2, 3]


def test_only_so_many_pages_are_updated_at_once(two_runs: Path) -> None:
    with running(two_runs) as address, ExitStack() as stack:
        limits = httpx.Limits(max_connections=None)
        client = stack.enter_context(httpx.Client(timeout=30, limits=limits))
        events = f"{address}api/events?run=ds2"
        streams = [stack.enter_context(client.stream("GET", events)) for _ in range(MAX_STREAMS)]
        lines = [stream.iter_lines() for stream in streams]  # kept: else the streams are closed
        assert all(stream.status_code == 200 for stream in streams) and all(map(next, lines))
        assert read_status(client, events) == 503
        assert client.get(f"{address}api/runs").status_code == 200  # everything else works
        streams[0].close()
        until = time.monotonic() + 10
        while (status := read_status(client, events)) == 503 and time.monotonic() < until:
            time.sleep(0.1)
        assert status == 200


def read_status(client: httpx.Client, address: str) -> int:
    """Return the status of a stream without reading it."""
    with client.stream("GET", address) as stream:
        return stream.status_code


def test_an_unknown_run_has_no_updates_and_a_huge_head_is_refused(two_runs: Path) -> None:
    with running(two_runs) as address:
        assert httpx.get(f"{address}api/events?run=../x").status_code == 400
        host, port = address.removeprefix("http://").rstrip("/").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as raw:
            raw.sendall(b"GET /?" + b"x" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert raw.recv(200)[9:12] in (b"400", b"414")


def test_the_address_is_printed_and_the_browser_opens(
    two_runs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    opened, is_open = [], threading.Event()
    monkeypatch.setattr(serving.webbrowser, "open", lambda url: (opened.append(url), is_open.set()))
    monkeypatch.setattr(DashboardServer, "run", lambda _self: is_open.wait(10))
    prepared = prepare_dashboard(two_runs, port=0)
    serve_dashboard(prepared, opens_browser=True)
    prepared.listener.close()
    assert opened == [prepared.address] and prepared.address in capsys.readouterr().err


def test_the_command_names_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dashboard", str(tmp_path / "none")]) == 2
    assert "there is no such directory" in capsys.readouterr().err
    (tmp_path / "token").write_text("short\n")
    assert main(["dashboard", str(tmp_path), "--token-file", str(tmp_path / "token")]) == 2
    assert "at least 16 characters" in capsys.readouterr().err


def test_the_command_ends_with_an_interrupt(two_runs: Path) -> None:
    command = [sys.executable, "-m", "penstock", "dashboard", str(two_runs), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, env=os.environ, text=True)
    assert process.stderr is not None
    with process:
        assert process.stderr.readline().startswith("dashboard: http://127.0.0.1:")
        process.stderr.readline()
        process.send_signal(signal.SIGINT)
        assert process.wait(20) in (0, 130)
        assert "Traceback" not in process.stderr.read()
