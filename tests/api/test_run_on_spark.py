"""Runs on Spark from Python programs: each starts a process, as a user's script does."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import penstock
from penstock.topics.embedded.topic import Topic

pytestmark = pytest.mark.spark

PROGRAMS = Path(__file__).with_name("programs")
WITHIN_S = 300.0


@contextmanager
def started(program: str, home: Path) -> Iterator["subprocess.Popen[str]"]:
    """Start a program in an empty directory; it is gone in the end."""
    with (home / "messages.txt").open("w") as messages:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAMS / program), str(home)],
            cwd=home,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=messages,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def messages(home: Path) -> str:
    return (home / "messages.txt").read_text()


def test_an_existing_session_is_used_and_left_alone(tmp_path: Path) -> None:
    with started("own_session.py", tmp_path) as process:
        output, _ = process.communicate(timeout=2 * WITHIN_S)
    assert process.returncode == 0, messages(tmp_path)
    report = json.loads(output)

    # a run that produces its rows: functions of __main__ reached the workers
    assert report["offered"] > 0
    assert report["ids"] == list(range(report["offered"]))
    assert report["driver"] not in report["processes"]
    # two runs over files in another thread: each drained what was there, the second only new files
    large = [number for number in range(400) if number % 100 >= 50]
    assert [run["rows"] for run in report["drained"]] == [large[:100], large]
    assert {run["thread"] for run in report["drained"]} == {"other"}
    assert {run["ended"] for run in report["drained"]} == {"finished"}
    # the session afterwards
    before, after = report["settings"]
    assert before == after
    assert report["still_usable"] == [0 + 1 + 2]
    assert report["is_active"] and report["active_queries"] == 0


def test_a_run_in_the_background_can_be_watched_and_stopped(tmp_path: Path) -> None:
    with started("background.py", tmp_path) as process:
        running = _hear(process, tmp_path)
        assert running["word"] == "running" and running["alive"] and not running["waited"]
        assert "running" in running["shown"]

        live = penstock.open_run(tmp_path / "first")  # from another process, this one
        _until(lambda: live.ticks.num_rows >= 2 and live.ticks["replicas"][-1].as_py() > 0)
        assert live.is_running and live.status().is_live
        with pytest.raises(penstock.NotReadyError, match="has not finished"):
            _ = live.result
        assert "running" in live._repr_html_()

        assert process.stdin is not None
        print("stop", file=process.stdin, flush=True)
        assert _hear(process, tmp_path)["word"] == "not ready"
        stopped = _hear(process, tmp_path)
        assert (stopped["alive"], stopped["waited"], stopped["ended"]) == (False, True, "stopped")
        assert not live.is_running and live.result.spark is not None

        # the second run, in a thread of the same program, which goes on when its run is stopped
        _until(lambda: (tmp_path / "second" / "run.toml").is_file())
        live = penstock.open_run(tmp_path / "second")
        _until(lambda: live.ticks.num_rows >= 2)
        live.stop(WITHIN_S)
        ended = _hear(process, tmp_path)
        assert (ended["thread"], ended["ended"]) == ("other", "stopped")
        assert _hear(process, tmp_path) == {"word": "goes on", "listed": []}
        assert process.wait(WITHIN_S) == 0, messages(tmp_path)
    _check_rows(tmp_path / "second", process.pid)


def _check_rows(run: Path, driver: int) -> None:
    """Every number was doubled once, in another process than the program's."""
    topic = Topic.open(run / "topics" / "doubled")
    rows = [row for batch in topic.read(topic.first, topic.end) for row in batch.to_pylist()]
    assert rows and sorted(row["id"] for row in rows) == list(range(len(rows)))
    assert all(row["double"] == 2 * row["id"] and row["process"] != driver for row in rows)


def _hear(process: "subprocess.Popen[str]", home: Path) -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, messages(home)
    return dict(json.loads(line))


def _until(condition: Any) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.5)
