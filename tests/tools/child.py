"""A driver in a process of its own, as its parent sees it."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tests.tools.processes import MARK, Process, marked

ROOT = Path(__file__).parents[2]


class Child:
    """One start of `drive` on a run directory."""

    def __init__(self, run: Path, mark: str, *options: str) -> None:
        self._mark = mark
        self._log = (run.parent / f"{run.name}.driver.log").open("ab")
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.tools.drive", str(run), *options],
            cwd=ROOT,
            env={**os.environ, MARK: mark},
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
        )
        self.pid = self._process.pid
        #: Everything that it told, in order.
        self.told: list[dict[str, Any]] = []
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            self.told += (json.loads(line) for line in lines if line.startswith("{"))

    @property
    def code(self) -> int | None:
        """Its exit code; None while it lives."""
        return self._process.poll()

    def has_told(self, state: str) -> bool:
        """Whether it has come so far."""
        return any(message["state"] == state for message in self.told)

    def all_told(self, state: str) -> list[dict[str, Any]]:
        """Return everything that it told about one state."""
        return [message for message in self.told if message["state"] == state]

    def wait_for(self, state: str, within_s: float) -> bool:
        """Wait until it has come so far; False if it has not, or is gone."""
        deadline = time.monotonic() + within_s
        while not self.has_told(state):
            if self.code is not None or time.monotonic() > deadline:
                return self.has_told(state)
            time.sleep(0.05)
        return True

    def wait(self, within_s: float) -> int | None:
        """Wait until it is gone and return its code; None if it is not."""
        try:
            self._process.wait(within_s)
        except subprocess.TimeoutExpired:
            return None
        self._thread.join()
        self._log.close()
        return self._process.returncode

    def processes(self, kind: str) -> list[Process]:
        """Return its living processes of a kind."""
        return [process for process in marked(self._mark) if process.kind == kind]
