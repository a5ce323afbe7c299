"""`penstock pubsub serve` as a process that can be killed."""

import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType

START_S = 60.0


def find_port() -> int:
    """Return a free port; a server that is started again needs the same one."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class ServeProcess:
    """A server in a directory; `start` after `kill` continues it."""

    def __init__(self, directory: Path, space: Path, *options: str) -> None:
        self._directory, self._space, self._options = directory, space, options
        self._port = find_port()
        self.url = f"http://127.0.0.1:{self._port}"
        self._process: subprocess.Popen[str] | None = None

    def start(self, timeout_s: float = START_S) -> None:
        """Start and wait for the address on stdout, and for the server behind it."""
        command = [sys.executable, "-m", "penstock", "pubsub", "serve", "--dir"]
        command += [str(self._directory), "--space", str(self._space), *self._options]
        self._process = subprocess.Popen(
            [*command, "--port", str(self._port)],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | {"PYTHONWARNINGS": "default"},
        )
        assert self._process.stdout is not None
        assert select.select([self._process.stdout], [], [], timeout_s)[0], "no address"
        assert self._process.stdout.readline().strip() == self.url
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                socket.create_connection(("127.0.0.1", self._port), 1).close()
                return
            except OSError:
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def kill(self) -> None:
        """End it as a power failure would."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to end and return its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None and self._process.stdout is not None
        self._process.send_signal(number)
        code = self._process.wait(30)
        self._process.stdout.close()
        self._process = None
        return code

    def __enter__(self) -> "ServeProcess":
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is not None:
            self.kill()
