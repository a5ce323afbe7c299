"""A server socket on this machine: every connection has its task, and all end together."""

import asyncio
import os
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from penstock.decentralized.processes.handshake import LOOPBACK
from penstock.errors import RunError

_HINT = "leave out --port to use free ports, or choose another one"

#: Serves one connection until its end.
Serve = Callable[[StreamReader, StreamWriter], Coroutine[Any, Any, None]]


class ServerSocket:
    """Listens on loopback only."""

    def __init__(self, server: asyncio.Server, tasks: "set[asyncio.Task[None]]") -> None:
        self._server, self._tasks = server, tasks

    @classmethod
    async def open(cls, owner: str, port: int, serve: Serve) -> "ServerSocket":
        """Listen on a port, 0 for any free one; `RunError` names the owner if it is taken."""
        tasks: set[asyncio.Task[None]] = set()

        def accept(stream: StreamReader, writer: StreamWriter) -> None:
            task = asyncio.create_task(serve(stream, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        try:
            server = await asyncio.start_server(accept, LOOPBACK, port)
        except OSError as error:
            problem = os.strerror(error.errno or 0).lower()
            place = f"{owner} cannot listen on port {port} of {LOOPBACK}"
            raise RunError(f"{place}: {problem}; {_HINT}") from None
        return cls(server, tasks)

    @property
    def port(self) -> int:
        """The port that the socket listens on."""
        return int(self._server.sockets[0].getsockname()[1])

    async def close(self) -> None:
        """Refuse new connections, and end those that are open."""
        self._server.close()
        tasks: list[Awaitable[None]] = list(self._tasks)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
