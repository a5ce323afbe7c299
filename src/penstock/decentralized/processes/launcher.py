"""The launcher: starts processes, notices their end, and takes their reports. It decides nothing.

It stands for the provider of machines, the paper's createNode(): a node that has decided to
duplicate itself asks for processes, and gets their addresses. Records and messages of the protocol
never pass the launcher.
"""

import asyncio
import secrets
import time
from asyncio import Future, StreamReader, StreamWriter
from collections.abc import Callable
from typing import Any

from penstock.decentralized.node_state import NodeId
from penstock.decentralized.processes.fork_client import ForkClient
from penstock.decentralized.processes.frames import FrameReader, encode_frame
from penstock.decentralized.processes.handshake import StrangerError, accept_peer
from penstock.decentralized.processes.launcher_link import (
    CREATE,
    CREATED,
    ENDED,
    FAILED,
    LISTENING,
)
from penstock.decentralized.processes.node_config import LAUNCHER, NodeConfig
from penstock.decentralized.processes.run_spec import ProcessRunSpec
from penstock.decentralized.processes.server_socket import ServerSocket
from penstock.errors import RunError

#: More processes at once would rather be a mistake than a pipeline.
MAX_NODES = 200
#: A node that reports a failure may only be the witness of another one's end; wait for that.
_WITNESS_S = 1.0

#: Called with the name of a node, the kind of its message and the content.
Listener = Callable[[str, str, Any], None]


class _Member:
    """One node, as the launcher knows it."""

    def __init__(self, operator: str) -> None:
        self.operator = operator
        self.id: Future[NodeId] = asyncio.get_running_loop().create_future()
        self.writer: StreamWriter | None = None
        #: Whether the node has sent its last report, so that its process may end.
        self.is_done = False
        #: Set when everything that the node sent is read.
        self.is_read = asyncio.Event()


class Launcher:
    """The processes of one run."""

    def __init__(self, spec: ProcessRunSpec, listener: Listener) -> None:
        self._spec, self._listener = spec, listener
        self._token, self._began_s = secrets.token_hex(32), time.monotonic()
        self._members: dict[str, _Member] = {}
        #: All processes that were ever started.
        self.started = 0
        #: The number of the last node of each operator.
        self._numbers: dict[str, int] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: ServerSocket | None = None
        self._forks: ForkClient | None = None
        #: Has the error if a process died.
        self.failure: Future[None] = asyncio.get_running_loop().create_future()
        self.peak = 0
        self.strangers = 0

    def elapsed_s(self) -> float:
        """Return the seconds since the run began."""
        return time.monotonic() - self._began_s

    @property
    def operators(self) -> dict[str, str]:
        """The operator of every node whose process lives."""
        return {name: member.operator for name, member in self._members.items()}

    async def __aenter__(self) -> "Launcher":
        self._server = await ServerSocket.open("the launcher", self._spec.port, self._serve)
        self._forks = await ForkClient.open()
        self._run(self._follow_forks(self._forks))
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        if self._server is not None:
            await self._server.close()
        if self._forks is not None:
            await self._forks.close()

    async def start_node(self, operator: str) -> NodeId:
        """Start a process; return its id when it listens."""
        if len(self._members) >= MAX_NODES:
            problem = f"the run has {MAX_NODES} processes already; lower --instances or --capacity"
            raise RunError(problem)
        number = self._numbers[operator] = self._numbers.get(operator, 0) + 1
        name = f"{operator}-{number}"
        self.started += 1
        assert self._server is not None and self._forks is not None
        config = NodeConfig(
            name=name,
            operator=operator,
            port=self._spec.port + self.started if self._spec.port else 0,
            launcher_port=self._server.port,
            token=self._token,
            began_s=self._began_s,
            spec=self._spec,
        )
        member = self._members[name] = _Member(operator)
        self.peak = max(self.peak, len(self._members))
        self._forks.fork(config.to_json())
        return await member.id

    def send(self, name: str, kind: str, body: Any = None) -> None:
        """Send a command to a node, unless it has gone."""
        member = self._members.get(name)
        if member is not None and member.writer is not None and not member.is_done:
            member.writer.write(encode_frame([kind, body]))

    # --- nodes

    async def _serve(self, stream: StreamReader, writer: StreamWriter) -> None:
        try:
            name, reader = await accept_peer(stream, writer, self._token, LAUNCHER)
            self._members[name].writer = writer
        except (StrangerError, KeyError, OSError):
            self.strangers += 1
            writer.close()
            return
        member = self._members[name]
        try:
            await self._read_all(name, reader)
        except (EOFError, OSError):
            pass  # the fork server reports the end of the node
        except Exception as error:
            self._fail(f"node {name} sent an invalid report: {error!r}")
        finally:
            writer.close()
            member.is_read.set()

    async def _read_all(self, name: str, reader: FrameReader) -> None:
        while True:
            kind, body = await reader.read()
            if kind == LISTENING:
                self._members[name].id.set_result(body)
            elif kind == CREATE:
                self._run(self._create(name, body))
            elif kind == FAILED:
                self._run(self._note_failure(body))
            self._members[name].is_done |= kind == ENDED
            self._listener(name, kind, body)

    async def _create(self, name: str, copies: int) -> None:
        operator = self._members[name].operator
        nodes = await asyncio.gather(*(self.start_node(operator) for _ in range(copies)))
        self.send(name, CREATED, nodes)

    async def _note_failure(self, problem: str) -> None:
        await asyncio.sleep(_WITNESS_S)
        self._fail(problem)

    # --- processes

    async def _follow_forks(self, forks: ForkClient) -> None:
        code = await forks.follow(lambda *event: self._run(self._note_exit(*event)))
        self._fail(f"the process that forks nodes has ended with code {code}; run again")

    async def _note_exit(self, name: str, process: int, code: int) -> None:
        member = self._members[name]
        if code < 0:
            why = "its records are lost (the protocol assumes nodes that do not crash); run again"
            self._fail(f"node {name} (process {process}) was killed by signal {-code}; {why}")
            return
        if member.writer is not None:
            await member.is_read.wait()
        if code or not member.is_done:
            await self._note_failure(f"node {name} (process {process}) ended with code {code}")
        del self._members[name]

    def _fail(self, problem: str) -> None:
        if not self.failure.done():
            self.failure.set_exception(RunError(problem))

    def _run(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._note_end)

    def _note_end(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and not self.failure.done():
            self.failure.set_exception(error)
