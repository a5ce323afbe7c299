"""The channels of a node to its peers; each opens with the first message."""

import asyncio
from asyncio import StreamWriter
from collections.abc import Callable
from random import Random
from typing import Any

from penstock.decentralized.node_state import NodeId
from penstock.decentralized.processes.channel import Channel
from penstock.decentralized.processes.handshake import dial
from penstock.decentralized.processes.node_config import NodeConfig, name_of, port_of


class PeerChannels:
    """Sends messages to nodes by their ids, which are also their addresses."""

    def __init__(self, node: NodeId, config: NodeConfig, fail: Callable[[str], None]) -> None:
        self._node, self._config, self._fail = node, config, fail
        self._channels: dict[NodeId, Channel] = {}

    def send(self, to: NodeId, body: Any) -> None:
        """Queue a message for a node; never blocks."""
        if to not in self._channels:
            channel = Channel(lambda: self._connect(to), self._delays_s(to))
            channel.task.add_done_callback(lambda task: self._note_end(to, task))
            self._channels[to] = channel
        self._channels[to].send(body)

    def hang_up(self, peer: NodeId) -> None:
        """Close the channel to a node that has stopped."""
        if (channel := self._channels.pop(peer, None)) is not None:
            channel.finish()

    async def close(self) -> None:
        """Send all that waits, then close every channel."""
        await asyncio.gather(*(channel.close() for channel in self._channels.values()))

    async def _connect(self, to: NodeId) -> StreamWriter:
        _, writer = await dial(port_of(to), self._config.token, self._node, to)
        return writer

    def _delays_s(self, to: NodeId) -> Callable[[], float]:
        """Return the random delays of one channel."""
        low, high = self._config.spec.delay_ms
        random = Random(f"{self._config.spec.seed}/{self._config.name}/{name_of(to)}")
        return lambda: random.uniform(low, high) / 1000

    def _note_end(self, to: NodeId, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._fail(f"cannot send to {name_of(to)}: {error}")
