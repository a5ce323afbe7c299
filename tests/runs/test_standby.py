"""A standby waits while another process holds the run, and knows how that one ended."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock.files.lock import Lock
from penstock.runs.result import RunResult
from penstock.runs.run_directory import LOCK, finish_run
from penstock.runs.run_lock import run_lock
from penstock.runs.standby import Standby

#: A driver: takes the lock, says so, and holds it until it is killed.
HOLDER = """
import sys, time
from pathlib import Path
from penstock.files.lock import Lock
lock = Lock(Path(sys.argv[1]))
lock.acquire()
print("held", flush=True)
time.sleep(600)
"""
STOPPED = RunResult.from_json({"ended": "stopped"})


@contextmanager
def holder(directory: Path) -> Iterator["subprocess.Popen[str]"]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory / LOCK)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    with child:
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


class Waiting:
    """A standby in a thread of its own."""

    def __init__(self, directory: Path) -> None:
        self.standby, self.said = Standby(directory), list[str]()
        self.lock = Lock(directory / LOCK)
        self._thread = threading.Thread(target=self._wait)
        self._thread.start()
        while not self.said:
            time.sleep(0.01)

    def _wait(self) -> None:
        self.standby.acquire(self.lock, self.said.append)

    @property
    def waits(self) -> bool:
        return self._thread.is_alive()

    def end(self) -> None:
        self._thread.join(10)
        assert not self.waits
        self.lock.release()


def test_without_another_process_it_starts_at_once(tmp_path: Path) -> None:
    standby, said = Standby(tmp_path), list[str]()
    with run_lock(tmp_path, said.append, standby.acquire) as lock:
        assert lock.fileno() >= 0
    assert standby.ended is None
    assert not said


def test_it_takes_over_when_the_other_one_is_killed(tmp_path: Path) -> None:
    with holder(tmp_path) as child:
        waiting = Waiting(tmp_path)
        assert waiting.waits
        child.kill()
        waiting.end()
    assert waiting.standby.ended is None
    assert f"process {child.pid} holds" in waiting.said[0]
    assert "taking over" in waiting.said[-1]


def test_it_ends_with_the_result_of_a_run_that_ended_by_itself(tmp_path: Path) -> None:
    with holder(tmp_path) as child:
        waiting = Waiting(tmp_path)
        finish_run(tmp_path, STOPPED)
        child.kill()
        waiting.end()
    assert waiting.standby.ended == STOPPED
    assert "ended by itself" in waiting.said[-1]


def test_a_result_from_before_is_not_that_of_a_killed_process(tmp_path: Path) -> None:
    """A resumed run removes the last result, but may be killed before it comes to that."""
    finish_run(tmp_path, STOPPED)
    with holder(tmp_path) as child:
        waiting = Waiting(tmp_path)
        child.kill()
        waiting.end()
    assert waiting.standby.ended is None


def test_one_of_two_takes_over_and_the_other_one_waits_on(tmp_path: Path) -> None:
    with holder(tmp_path) as child:
        pair = Waiting(tmp_path), Waiting(tmp_path)
        child.kill()
        while all(one.waits for one in pair):
            time.sleep(0.01)
        first, second = sorted(pair, key=lambda one: one.waits)
        time.sleep(0.5)
        assert second.waits
        assert f"process {os.getpid()} holds" in second.said[-1]
    first.end()
    second.end()


def test_a_child_that_outlives_the_driver_still_keeps_the_standby_out(tmp_path: Path) -> None:
    """The JVM inherits the lock: it may still write when its driver is gone."""
    lock = Lock(tmp_path / LOCK)
    lock.acquire()
    jvm = subprocess.Popen(["sleep", "600"], pass_fds=[lock.fileno()])
    lock.release()
    with jvm:
        waiting = Waiting(tmp_path)
        time.sleep(0.5)
        assert waiting.waits
        jvm.kill()
        waiting.end()


def test_it_needs_the_directory_of_the_other_one(capsys: pytest.CaptureFixture[str]) -> None:
    from penstock.cli.main import main  # noqa: PLC0415

    assert main(["run", "words", "--standby"]) == 2
    assert "--standby: waits beside a run" in capsys.readouterr().err
