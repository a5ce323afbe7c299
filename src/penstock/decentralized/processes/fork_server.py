"""Starts processes of nodes: a small process that has everything imported, and forks.

It reads one JSON object per line from its standard input, and forks a node for each. It writes
one line when a node has started and one when it has ended. It decides nothing. Its nodes end when
it ends, and it ends when the launcher does.
"""

import gc
import json
import os
import signal
from collections.abc import Callable
from selectors import EVENT_READ, DefaultSelector
from typing import Any

from penstock.engines.child_process import prepare_child

#: Runs a node with its configuration in the forked process, and returns the exit code.
RunNode = Callable[[dict[str, Any]], int]
_STDIN, _STDOUT = 0, 1


class ForkServer:
    """Forks nodes, and reports their start and their end."""

    def __init__(self, run_node: RunNode) -> None:
        self._run_node = run_node
        self._names: dict[int, str] = {}
        self._prepare_child = prepare_child()
        self._input = b""
        # a signal makes this pipe readable, so that one wait covers requests and ended children
        self._bell, bell = os.pipe()
        os.set_blocking(bell, False)
        signal.set_wakeup_fd(bell)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Answer requests until the standard input is closed; then kill the nodes that are left."""
        selector = DefaultSelector()
        selector.register(_STDIN, EVENT_READ, self._read_requests)
        selector.register(self._bell, EVENT_READ, self._reap)
        is_open = True
        while is_open:
            for key, _ in selector.select():
                is_open = key.data() and is_open
        for process in self._names:
            os.kill(process, signal.SIGKILL)

    def _read_requests(self) -> bool:
        data = os.read(_STDIN, 1 << 16)
        *lines, self._input = (self._input + data).split(b"\n")
        for line in lines:
            self._fork(json.loads(line))
        return bool(data)

    def _fork(self, request: dict[str, Any]) -> None:
        process = os.fork()
        if not process:
            self._become_node(request)
        self._names[process] = request["name"]
        _report({"started": request["name"], "process": process})

    def _become_node(self, request: dict[str, Any]) -> None:
        """Run the node in the forked process, which ends here."""
        code = 1
        try:
            self._prepare_child()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            # only the server may read requests and write reports
            nothing = os.open(os.devnull, os.O_RDWR)
            os.dup2(nothing, _STDIN)
            os.dup2(nothing, _STDOUT)
            code = self._run_node(request)
        finally:
            os._exit(code)

    def _reap(self) -> bool:
        os.read(self._bell, 1 << 10)
        while self._names:
            process, status = os.waitpid(-1, os.WNOHANG)
            if not process:
                break
            name, code = self._names.pop(process), os.waitstatus_to_exitcode(status)
            _report({"ended": name, "process": process, "code": code})
        return True


def _report(event: dict[str, Any]) -> None:
    os.write(_STDOUT, f"{json.dumps(event)}\n".encode())


def main(run_node: RunNode) -> int:
    """Serve until the launcher closes the pipe."""
    gc.freeze()  # what is imported stays shared with the children
    ForkServer(run_node).serve()
    return 0
