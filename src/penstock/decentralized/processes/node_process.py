"""The process of one node: listens, works, decides, reports, and ends."""

import asyncio
import os
import sys
import time
from asyncio import Future
from collections.abc import Coroutine
from typing import Any

from penstock.decentralized.processes import fork_server
from penstock.decentralized.processes.decision_loop import DecisionLoop
from penstock.decentralized.processes.functions import build_pipeline
from penstock.decentralized.processes.launcher_link import (
    BEGIN,
    END_LOAD,
    ENDED,
    FAILED,
    FINISH,
    FREEZE,
    FROZEN,
    LISTENING,
    LOAD_ENDED,
    STATUS,
    LauncherLink,
)
from penstock.decentralized.processes.message_json import state_from_json, state_to_json
from penstock.decentralized.processes.node import Node, NodeError
from penstock.decentralized.processes.node_action import ActionLog
from penstock.decentralized.processes.node_config import NodeConfig, node_id
from penstock.decentralized.processes.node_work import (
    NodeWork,
    OperatorWork,
    SinkWork,
    SourceWork,
)
from penstock.decentralized.processes.run_spec import SINK, SOURCE
from penstock.decentralized.processes.server_socket import ServerSocket
from penstock.errors import PenstockError

#: Seconds between two reports to the launcher.
REPORT_S = 0.25


class NodeProcess:
    """Everything that runs in one process."""

    def __init__(self, config: NodeConfig, link: LauncherLink, port: int) -> None:
        self._config, self._link = config, link
        self._end: Future[None] = asyncio.get_running_loop().create_future()
        self.node = Node(config, node_id(config.name, port), self._fail)
        self._work = self.node.work = build_work(config, self.node)
        self._decisions = DecisionLoop(self.node, link, config.spec, config.name)
        self._actions = ActionLog(config.name, config.operator, self._clock)
        self.node.on_change = self._actions.note
        self._tasks: list[asyncio.Task[None]] = []

    async def run(self) -> None:
        """Work until the node stops or the run ends; then report once more."""
        loops = [
            self._link.follow(self._obey),
            self._report(),
            self._await_stop(),
            self._work.run(),
        ]
        if not self._config.is_end:
            loops.append(self._decisions.run())
        for loop in loops:
            self._start(loop)
        self._link.send(LISTENING, self.node.id)
        await self._end
        for task in self._tasks:
            task.remove_done_callback(self._note_end)
            task.cancel()
        await self.node.channels.close()
        self._send_status()
        state = self.node.state
        self._link.send(ENDED, state_to_json(state) if state is not None else None)

    def _start(self, loop: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(loop)
        task.add_done_callback(self._note_end)
        self._tasks.append(task)

    def _note_end(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            if isinstance(error, EOFError | ConnectionError):
                os._exit(1)  # the launcher has ended
            self._fail(NodeError(f"node {self._config.name}: {type(error).__name__}: {error}"))

    def _fail(self, error: Exception) -> None:
        if not self._end.done():
            self._end.set_exception(error)

    def _obey(self, command: str, body: Any) -> None:
        if command == BEGIN:
            self.node.begin(state_from_json(body))
        elif command == FREEZE:
            self._start(self._freeze())
        elif command == END_LOAD and isinstance(self._work, SourceWork):
            self._work.is_stopped = True
            self._send_status()
            self._link.send(LOAD_ENDED)
        elif command == FINISH and not self._end.done():
            self._end.set_result(None)

    async def _freeze(self) -> None:
        await self._decisions.freeze()
        self._send_status()
        self._link.send(FROZEN)

    async def _await_stop(self) -> None:
        await self.node.is_stopped.wait()
        if not self._end.done():
            self._end.set_result(None)

    async def _report(self) -> None:
        while True:
            self._send_status()
            await asyncio.sleep(REPORT_S)

    def _send_status(self) -> None:
        state = self.node.state
        status = {
            "phase": None if state is None else state.phase.value,
            "queue": 0 if state is None else state.pending,
            "messages": dict(self.node.messages),
            "strangers": self.node.strangers,
            "actions": [action.to_json() for action in self._actions.take_finished()],
            "work": self._work.take_report().to_json(),
        }
        self._link.send(STATUS, status)

    def _clock(self) -> float:
        return time.monotonic() - self._config.began_s


def build_work(config: NodeConfig, node: Node) -> NodeWork:
    """Return what a node of this operator does with records."""
    if config.operator == SOURCE:
        return SourceWork(node, config.spec)
    if config.operator == SINK:
        return SinkWork(node)
    function = build_pipeline(config.spec.operators)[config.operator]
    return OperatorWork(node, function, 1 / config.spec.capacity)


async def serve_node(config: NodeConfig) -> int:
    """Run one node from start to end; return the exit code."""
    link = await LauncherLink.open(config)
    try:
        await _listen_and_run(config, link)
        code = 0
    except PenstockError as error:
        link.send(FAILED, str(error))
        code = 1
    except Exception as error:
        link.send(FAILED, f"node {config.name}: {error!r}")
        code = 1
    await link.close()
    return code


async def _listen_and_run(config: NodeConfig, link: LauncherLink) -> None:
    process: NodeProcess | None = None

    async def serve_peer(stream: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert process is not None
        await process.node.serve_peer(stream, writer)

    server = await ServerSocket.open(f"node {config.name}", config.port, serve_peer)
    process = NodeProcess(config, link, server.port)
    try:
        await process.run()
    finally:
        await server.close()


def run_node(request: dict[str, Any]) -> int:
    """Run one node in this process."""
    return asyncio.run(serve_node(NodeConfig.from_json(request)))


if __name__ == "__main__":
    sys.exit(fork_server.main(run_node))
