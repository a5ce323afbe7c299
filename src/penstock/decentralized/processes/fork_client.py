"""The launcher's side of the fork server: asks for processes, and hears of their end."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from subprocess import PIPE
from typing import Any

from penstock.engines.child_process import prepare_child

#: The module that runs as the fork server.
SERVER = "penstock.decentralized.processes.node_process"

#: Called with the name of a node, its process and its exit code; negative: minus a signal.
NoteExit = Callable[[str, int, int], None]


class ForkClient:
    """A fork server that ends with this process, and all its nodes with it."""

    def __init__(self, server: asyncio.subprocess.Process) -> None:
        self._server = server

    @classmethod
    async def open(cls) -> "ForkClient":
        """Start the server."""
        return cls(
            await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", SERVER),
                stdin=PIPE,
                stdout=PIPE,
                start_new_session=True,  # Ctrl-C is for the launcher
                preexec_fn=prepare_child(),
            )
        )

    def fork(self, request: dict[str, Any]) -> None:
        """Ask for a process; the request contains the token, so it goes through a pipe."""
        assert self._server.stdin is not None
        self._server.stdin.write(f"{json.dumps(request)}\n".encode())

    async def follow(self, note_exit: NoteExit) -> int:
        """Report the end of every process; return the exit code of the server."""
        assert self._server.stdout is not None
        async for line in self._server.stdout:
            event = json.loads(line)
            if "ended" in event:
                note_exit(event["ended"], event["process"], event["code"])
        return await self._server.wait()

    async def close(self) -> None:
        """Kill the server and all nodes that are left."""
        if self._server.returncode is None:
            with suppress(ProcessLookupError):
                # the server leads a session, and its nodes are in the same process group
                os.killpg(self._server.pid, signal.SIGKILL)
            await self._server.wait()
