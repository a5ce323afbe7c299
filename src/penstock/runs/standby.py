"""A second process that waits beside a run and takes it over when its driver is gone.

The run's lock is lease and fence in one. The driver and its JVM hold it as long as they live, and
the kernel frees it when the last of them has ended, so there are never two that write.
"""

import time
from collections.abc import Callable
from pathlib import Path

from penstock.errors import LockedError
from penstock.files.lock import Lock
from penstock.runs.result import RunResult
from penstock.runs.run_directory import RESULT, read_result

#: Seconds between two looks at the lock.
_POLL_S = 0.2


class Standby:
    """Waits until the run in a directory is free, and knows whether it has ended by itself."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        #: The result that the other process wrote; None if there was none, or it was killed.
        self.ended: RunResult | None = None

    def acquire(self, lock: Lock, say: Callable[[str], None]) -> None:
        """Take the lock as soon as nobody holds it."""
        path, shown = self._directory / RESULT, ""
        before = _version(path)
        while True:
            try:
                lock.acquire()
                break
            except LockedError as error:
                # the holder changes when a driver is killed before its JVM, or another one starts
                if error.holder != shown:
                    shown = error.holder
                    say(f"standby: {shown} holds {self._directory}; waiting for it to end")
                time.sleep(_POLL_S)
        if not shown:
            return
        if _version(path) not in (None, before):
            self.ended = read_result(path)
            say(f"standby: the run in {self._directory} has ended by itself")
        else:
            say(f"standby: {shown} is gone and left no result; taking over {self._directory}")


def _version(path: Path) -> tuple[int, int] | None:
    """What tells one file of that name from a later one."""
    try:
        stat = path.stat()
    except FileNotFoundError:
        return None
    return stat.st_ino, stat.st_mtime_ns
