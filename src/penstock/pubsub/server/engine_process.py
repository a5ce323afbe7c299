"""The pipeline on Spark as a child process, started again when it ends.

The run has its own process, so that a server with many requests and a driver with many batches do
not wait for each other. It ends with the server, and continues in the same directory.
"""

import logging
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from penstock.engines.child_process import prepare_child
from penstock.errors import RunError
from penstock.files.lock import find_holder
from penstock.runs.run_directory import LOCK

_log = logging.getLogger(__name__)
#: Waits before a run that ended is started again: the first, and the longest.
_MIN_WAIT_S, _MAX_WAIT_S = 2.0, 60.0
#: How long a run may take to stop after its running batches.
_STOP_S = 60.0
#: How long a new run may take to make its directory.
_START_S = 60.0
_POLL_S = 0.2


class EngineProcess:
    """Keeps the command of a run alive; a run of another process is left alone."""

    def __init__(self, command: Sequence[str], run: Path, log: Path) -> None:
        self._command, self._run, self._log = command, run, log
        self._is_closing = threading.Event()
        # the child ends with the thread that started it, so one thread does nothing else
        self._thread = threading.Thread(target=self._supervise, name="engine", daemon=True)
        #: Why the engine does not run; empty while it does.
        self.problem = ""

    def __enter__(self) -> "EngineProcess":
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_closing.set()
        self._thread.join(_STOP_S + 10)

    def wait_for(self, file: Path) -> None:
        """Wait until the run has made a file; `RunError` if it ends before."""
        deadline_s = time.monotonic() + _START_S
        while not file.exists():
            if self.problem or time.monotonic() > deadline_s:
                raise RunError(self.problem or f"the run has not begun; see {self._log}")
            time.sleep(_POLL_S)

    def _supervise(self) -> None:
        wait_s = _MIN_WAIT_S
        while not self._is_closing.is_set():
            holder = find_holder(self._run / LOCK) if self._run.is_dir() else None
            if holder is not None and holder.is_alive:
                self.problem = ""
                self._is_closing.wait(_POLL_S)
                continue
            code = self._carry_out()
            if self._is_closing.is_set():
                return
            self.problem = f"the run ended with code {code}; see {self._log}"
            _log.warning("%s; it starts again in %g s", self.problem, wait_s)
            self._is_closing.wait(wait_s)
            wait_s = min(2 * wait_s, _MAX_WAIT_S)

    def _carry_out(self) -> int:
        """Run it until it ends or the server does."""
        self.problem = ""
        with (
            self._log.open("ab") as log,
            subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=prepare_child(),
            ) as child,
        ):
            while child.poll() is None and not self._is_closing.wait(_POLL_S):
                pass
            if child.poll() is None:
                child.terminate()
                try:
                    child.wait(_STOP_S)
                except subprocess.TimeoutExpired:
                    child.kill()
            return child.wait()
