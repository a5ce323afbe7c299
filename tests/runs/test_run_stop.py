"""A run in a thread of a program is stopped by a file; the program itself gets no signal."""

import os
import threading
import time
from pathlib import Path

import pytest

from penstock.files.lock import Lock
from penstock.runs.observer import StopRequest
from penstock.runs.run_directory import LOCK, SPEC_FILE
from penstock.runs.run_stop import LISTENER, REQUEST, stop_requests, stop_run


def in_thread(run: Path, stop: StopRequest, seconds: float = 20.0) -> threading.Thread:
    """Something like a run: it holds the directory until it is asked to stop."""

    def carry_out() -> None:
        with Lock(run / LOCK), stop_requests(run, stop):
            end = time.monotonic() + seconds
            while not stop.is_asked and time.monotonic() < end:
                time.sleep(0.02)

    thread = threading.Thread(target=carry_out)
    thread.start()
    return thread


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / SPEC_FILE).touch()
    return tmp_path


def test_a_run_in_a_thread_stops_and_its_process_lives(run: Path) -> None:
    stop, said = StopRequest(), list[str]()
    (run / REQUEST).touch()  # of an earlier run, which was killed before it saw it
    thread = in_thread(run, stop)
    while not (run / LISTENER).is_file():
        time.sleep(0.01)
    assert not stop.is_asked
    assert stop_run(run, 10.0, said.append)  # a signal would end this test
    thread.join()
    assert stop.is_asked and f"process {os.getpid()}" in said[0]
    assert sorted(path.name for path in run.iterdir()) == sorted([LOCK, SPEC_FILE])
    assert not stop_run(run, 10.0, said.append)


def test_a_run_in_the_main_thread_listens_to_signals_alone(run: Path) -> None:
    stop = StopRequest()
    with stop_requests(run, stop):
        assert not (run / LISTENER).exists()
        (run / REQUEST).touch()
        assert not stop.is_asked


def test_a_request_is_not_lost_while_the_file_of_requests_is_looked_for():
    stop = StopRequest()

    class SlowFile:
        def exists(self) -> bool:
            stop.is_asked = True  # another thread asks at this moment
            return False

    stop.file = SlowFile()  # type: ignore[assignment]
    assert stop.is_asked
    assert stop.is_asked
