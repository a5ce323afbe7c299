"""Asks a live run to stop gently, and waits until its directory is free.

The process of a command gets a signal. A run in another thread of a Python program gets none, and
the program shall not end with it: it names itself in a file, and a second file asks it to stop.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import PenstockError
from penstock.files.atomic import replace
from penstock.files.lock import Holder, find_holder
from penstock.runs.observer import StopRequest
from penstock.runs.operator_status import read_declared
from penstock.runs.run_directory import LOCK
from penstock.runs.run_status import check_run_directory

#: The process that looks for requests, and the request.
LISTENER, REQUEST = "stop-listener", "stop-request"
#: Seconds between two checks, and between two messages.
_POLL_S, _SAY_S = 0.1, 5.0


def stop_run(run: Path, timeout_s: float, say: Callable[[str], None]) -> bool:
    """Stop a run; False if it does not run. `PenstockError` if it is still there in the end."""
    check_run_directory(run)
    holder = find_holder(run / LOCK)
    if holder is None:
        return False
    if holder.is_alive:
        _ask(run, holder)
        say(f"asked process {holder.pid} to stop; waiting for running batches to end")
    else:
        say(f"the driver of {run} has ended; waiting for its child processes")
    _wait(run, timeout_s, say)
    return True


@contextmanager
def stop_requests(run: Path, stop: StopRequest) -> Iterator[None]:
    """Let other processes stop a run that is not in the main thread of its own."""
    if threading.current_thread() is threading.main_thread():
        yield
        return
    listener, request = run / LISTENER, run / REQUEST
    request.unlink(missing_ok=True)  # an old one
    # at once as a whole: whoever finds half a name would send a signal
    replace(listener, f"{os.getpid()}\n".encode())
    stop.file = request
    try:
        yield
    finally:
        _ = stop.is_asked  # remembers the request, whose file goes
        listener.unlink(missing_ok=True)
        request.unlink(missing_ok=True)


def _listens(run: Path, pid: int) -> bool:
    try:
        return (run / LISTENER).read_text(encoding="utf-8").strip() == str(pid)
    except OSError:
        return False


def _ask(run: Path, holder: Holder) -> None:
    assert holder.pid is not None
    if _listens(run, holder.pid):
        (run / REQUEST).touch()
        return
    try:
        os.kill(holder.pid, signal.SIGTERM)
    except ProcessLookupError:  # it ended in this moment
        pass
    except PermissionError:
        problem = f"{run} is run by process {holder.pid} of another user"
        raise PenstockError(f"{problem}\nhint: ask as that user, or as root") from None


def _wait(run: Path, timeout_s: float, say: Callable[[str], None]) -> None:
    began = reported_at = time.monotonic()
    while (holder := find_holder(run / LOCK)) is not None:
        now = time.monotonic()
        if now - began >= timeout_s:
            problem = f"{run} is still held by process {holder.pid} after {timeout_s:g} s"
            hint = "a second penstock stop ends it at once; penstock run --resume resumes it"
            raise PenstockError(f"{problem}\nhint: {hint}")
        if now - reported_at >= _SAY_S:
            reported_at = now
            say(f"still waiting after {now - began:.0f} s: {what_it_waits_for(run, holder)}")
        time.sleep(_POLL_S)


def what_it_waits_for(run: Path, holder: Holder) -> str:
    """Say what a run that was asked to stop still does."""
    if not holder.is_alive:
        return "Spark's JVM ends"
    busy = [name for name in read_declared(run)["operators"] if _is_busy(RunLayout(run), name)]
    return f"a batch of {', '.join(busy)} runs" if busy else "queries and Spark are being stopped"


def _is_busy(layout: RunLayout, name: str) -> bool:
    """Whether a batch was planned after the last one that was committed."""
    plan, directory = layout.plan(name), layout.batches(name)
    if not plan.is_file():
        return False
    record = BatchLog(directory).last() if directory.is_dir() else None
    return record is None or plan.stat().st_mtime > record.committed_at
