"""Channels between instances in discrete time: in order, and on request slow or lossy."""

from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import count
from random import Random
from typing import NamedTuple

from penstock.decentralized.messages import Deletion, Duplication, PeerMessage, RecordsArrived
from penstock.decentralized.node_state import NodeId
from penstock.decentralized.simulator.timeline import ScalingAction


class Envelope(NamedTuple):
    """What is under way to one instance; compared by the step and the order of sending."""

    due: int
    order: int
    to: NodeId
    content: PeerMessage | RecordsArrived
    #: The action that a message belongs to; None for records.
    action: ScalingAction | None


class SimulatedNetwork:
    """Delivers announcements and records in the step they are sent, and answers in the next.

    With a delay, each channel is slower by a number of steps that is drawn once, from 0 to that
    delay. If messages and records have the same delay, what goes from one instance to another
    stays in order; otherwise the faster ones overtake. Only messages of the protocol are lost,
    never records.
    """

    def __init__(
        self, random: Random, *, loss: float, message_delay: int, record_delay: int
    ) -> None:
        self._random, self._loss = random, loss
        self.message_delay, self.record_delay = message_delay, record_delay
        self._queue: list[Envelope] = []
        self._orders = count()
        #: The share of the delays that each channel has, from 0 to 1.
        self._slowness: dict[tuple[NodeId, NodeId], float] = {}

    def send(
        self,
        channel: tuple[NodeId, NodeId],
        content: PeerMessage | RecordsArrived,
        step: int,
        action: ScalingAction | None = None,
    ) -> None:
        """Put something into the channel from one instance to another."""
        if action is not None and self._loss and self._random.random() < self._loss:
            return
        is_answer = not isinstance(content, Duplication | Deletion | RecordsArrived)
        longest = self.message_delay if action is not None else self.record_delay
        due = step + is_answer + self._delay_of(channel, longest)
        heappush(self._queue, Envelope(due, next(self._orders), channel[1], content, action))

    def take_due(self, step: int) -> Iterator[Envelope]:
        """Remove and yield what is due, also what is sent meanwhile and due at once."""
        while self._queue and self._queue[0].due <= step:
            yield heappop(self._queue)

    def _delay_of(self, channel: tuple[NodeId, NodeId], longest: int) -> int:
        if not (self.message_delay or self.record_delay):
            return 0
        if channel not in self._slowness:
            self._slowness[channel] = self._random.random()
        return int(self._slowness[channel] * (longest + 1))
