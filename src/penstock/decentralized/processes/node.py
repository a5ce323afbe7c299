"""One node: an instance of an operator that runs the protocol over channels to its neighbours.

The node holds the state of the protocol, gives every message to `protocol.handle`, and carries
out the effects. It has no rules for scaling.
"""

import asyncio
from asyncio import StreamReader, StreamWriter
from collections import Counter
from collections.abc import Callable
from typing import Any

from penstock.decentralized.messages import (
    CreateNode,
    Effect,
    Message,
    NodeStopped,
    RecordsArrived,
    RecordsProcessed,
    Send,
)
from penstock.decentralized.node_state import NodeId, NodeState
from penstock.decentralized.processes.frames import FrameError, FrameReader
from penstock.decentralized.processes.handshake import StrangerError, accept_peer
from penstock.decentralized.processes.message_json import (
    message_from_json,
    message_to_json,
    state_from_json,
    state_to_json,
)
from penstock.decentralized.processes.node_config import NodeConfig, name_of
from penstock.decentralized.processes.node_work import NodeWork, Record
from penstock.decentralized.processes.peer_channels import PeerChannels
from penstock.decentralized.protocol import accepts_input, can_process, handle, routes
from penstock.errors import PenstockError

#: The kinds of messages between nodes.
_RECORD, _MESSAGE, _STATE = "record", "message", "state"


class NodeError(PenstockError):
    """A node cannot continue."""


class Node:
    """The protocol and the channels of one node; its work takes the records."""

    def __init__(self, config: NodeConfig, node: NodeId, fail: Callable[[Exception], None]) -> None:
        self.id, self._config, self._fail = node, config, fail
        self._state: NodeState | None = None
        #: Messages that came before the state.
        self._early: list[tuple[NodeId, Any]] = []
        self.channels = PeerChannels(node, config, self._report_failure)
        self._turn = 0
        self._has_news = asyncio.Event()
        #: Takes the records; set before the first message can come.
        self.work: NodeWork
        #: The number of siblings, with this node, that a predecessor sent along with a record.
        self.siblings: int | None = None
        #: Messages of the protocol that were sent, by kind.
        self.messages: Counter[str] = Counter()
        self.strangers = 0
        #: Called after every message with the states before and after it.
        self.on_change: Callable[[NodeState, NodeState], None] = lambda _before, _after: None
        self.is_stopped = asyncio.Event()

    # --- the protocol

    @property
    def state(self) -> NodeState | None:
        """The state of the protocol; None until the first state has arrived."""
        return self._state

    def begin(self, state: NodeState) -> None:
        """Take the first state, and what came before it."""
        if self._state is not None:
            raise FrameError("a second first state")
        self._state = state
        early, self._early = self._early, []
        for sender, body in early:
            self._receive(sender, body)
        self._has_news.set()

    def apply(self, message: Message) -> None:
        """Let the protocol handle a message, and carry out the effects."""
        assert self._state is not None
        before = self._state
        self._state, effects = handle(before, message)
        for effect in effects:
            self._carry_out(effect)
        self._has_news.set()
        self.on_change(before, self._state)

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case Send(to=to, message=message):
                self.messages[type(message).__name__] += 1
                self.channels.send(to, [_MESSAGE, message_to_json(message)])
            case CreateNode(state=state):
                # its process runs and listens already; with its state it becomes a node
                self.channels.send(state.node, [_STATE, state_to_json(state)])
            case NodeStopped():
                self.is_stopped.set()

    # --- records

    def note_arrival(self) -> None:
        """Report that a record has arrived and waits."""
        self.apply(RecordsArrived())

    async def wait_for_permission(self) -> None:
        """Wait until records may be taken from outside."""
        await self._wait_until(accepts_input)

    async def wait_for_record(self) -> None:
        """Wait until a record that has arrived may be processed."""
        await self._wait_until(can_process)

    async def _wait_until(self, is_true: Callable[[NodeState], bool]) -> None:
        while self._state is None or not is_true(self._state):
            self._has_news.clear()
            await self._has_news.wait()

    def pass_on(self, result: Record) -> None:
        """Report a record as processed, and send its result to a successor if there is one."""
        assert self._state is not None
        if nodes := routes(self._state):
            self._turn += 1
            siblings = len(self._state.neighbours.successors)
            body = [_RECORD, [result.sequence, result.due_s, result.fields, siblings]]
            self.channels.send(nodes[self._turn % len(nodes)], body)
        self.apply(RecordsProcessed())

    # --- channels

    def _report_failure(self, problem: str) -> None:
        self._fail(NodeError(f"node {self._config.name} {problem}"))

    async def serve_peer(self, stream: StreamReader, writer: StreamWriter) -> None:
        """Take the messages of one connection; a stranger is refused."""
        try:
            peer, reader = await accept_peer(stream, writer, self._config.token, self.id)
        except (StrangerError, OSError):
            self.strangers += 1
            writer.close()
            return
        try:
            await self._read_all(peer, reader)
        except OSError:
            pass  # the peer was killed; the launcher reports it
        except Exception as error:
            self._report_failure(f"got an invalid message from {name_of(peer)}: {error!r}")
        finally:
            writer.close()
            self.channels.hang_up(peer)  # it has stopped

    async def _read_all(self, peer: NodeId, reader: FrameReader) -> None:
        while True:
            try:
                body = await reader.read()
            except EOFError:
                return
            self._receive(peer, body)

    def _receive(self, sender: NodeId, body: Any) -> None:
        kind, content = body
        if kind == _STATE:
            self.begin(state_from_json(content))
        elif self._state is None:
            self._early.append((sender, body))
        elif kind == _RECORD:
            *fields, self.siblings = content
            self.work.accept(Record(*fields))
        else:
            message = message_from_json(content)
            if message.sender != sender:
                raise FrameError(f"a message of {message.sender!r}")
            self.apply(message)
