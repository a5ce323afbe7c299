"""The link of a node to the launcher: its reports, requests for processes, and commands."""

import asyncio
from asyncio import Future, StreamWriter
from collections.abc import Callable
from typing import Any

from penstock.decentralized.node_state import NodeId
from penstock.decentralized.processes.frames import FrameReader, encode_frame
from penstock.decentralized.processes.handshake import dial
from penstock.decentralized.processes.node_config import LAUNCHER, NodeConfig

#: Kinds of messages from a node to the launcher.
LISTENING, CREATE, STATUS = "listening", "create", "status"
LOAD_ENDED, FROZEN, FAILED, ENDED = "load-ended", "frozen", "failed", "ended"
#: Kinds of messages from the launcher to a node.
BEGIN, CREATED, FREEZE, END_LOAD, FINISH = "begin", "created", "freeze", "end-load", "finish"


class LauncherLink:
    """A connection to the launcher."""

    def __init__(self, reader: FrameReader, writer: StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self._created: Future[list[NodeId]] | None = None

    @classmethod
    async def open(cls, config: NodeConfig) -> "LauncherLink":
        """Connect to the launcher of a run."""
        return cls(*await dial(config.launcher_port, config.token, config.name, LAUNCHER))

    def send(self, kind: str, body: Any = None) -> None:
        """Send a message without waiting."""
        self._writer.write(encode_frame([kind, body]))

    async def create_nodes(self, copies: int) -> tuple[NodeId, ...]:
        """Ask for new processes of the own operator; return their ids when they listen."""
        self._created = asyncio.get_running_loop().create_future()
        self.send(CREATE, copies)
        return tuple(await self._created)

    async def follow(self, obey: Callable[[str, Any], None]) -> None:
        """Obey commands until the launcher closes the connection, which raises EOFError."""
        while True:
            kind, body = await self._reader.read()
            if kind == CREATED and self._created is not None:
                self._created.set_result(body)
            else:
                obey(kind, body)

    async def close(self) -> None:
        """Send what waits, and close."""
        self._writer.close()
        await self._writer.wait_closed()
