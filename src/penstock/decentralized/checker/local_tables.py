"""Numbers for node states, messages and inboxes, and every answer of the protocol once.

A pipeline has millions of states, but each node has only some thousands. So a node state, a
message and the contents of all channels to a node (its inbox) each get a number, and
`protocol.handle` is called once for each pair of a node state and a message.
"""

from collections.abc import Iterable
from typing import NamedTuple

from penstock.decentralized.checker.configuration import CheckConfig
from penstock.decentralized.messages import (
    CreateNode,
    Deletion,
    Duplicate,
    Duplication,
    Message,
    PeerMessage,
    RecordsArrived,
    RecordsProcessed,
    Send,
    StartSignal,
    Stop,
)
from penstock.decentralized.node_state import NodePhase, NodeState
from penstock.decentralized.protocol import (
    accepts_input,
    can_process,
    can_scale,
    can_stop,
    handle,
    routes,
)

FREE, STOPPED = 0, 1
EMPTY = 0
#: Numbers of the messages that are no messages between nodes; a duplication into a slot comes last.
RECORD, PROCESSED, STOP, DUPLICATE = 0, 1, 2, 3
#: Where the result of the last operator goes.
OUTSIDE = -1
#: Messages to a node by the slot of their sender, in the order in which they were sent.
Inbox = tuple[tuple[int, tuple[int, ...]], ...]
#: One delivery that an inbox offers: sender, message, and what remains.
Delivery = tuple[int, int, int]


class NodeFacts(NamedTuple):
    """What the exploration asks about a node state."""

    is_quiet: bool = True
    is_under_way: bool = False
    targets: tuple[int, ...] = ()
    can_scale: bool = False
    can_stop: bool = False
    accepts_input: bool = False
    #: Slots of the nodes that it knows, as bits.
    mentions: int = 0


class NodeStep(NamedTuple):
    """What a message does to a node."""

    state: int
    sends: tuple[tuple[int, int], ...] = ()
    #: Slot and state of the node that it creates.
    created: tuple[int, int] | None = None


class LocalTables:
    """Node states, messages and inboxes by number."""

    def __init__(self, config: CheckConfig) -> None:
        self.config = config
        self.names = config.slot_names
        self.slots = {name: slot for slot, name in enumerate(self.names)}
        self.states: list[NodeState | None] = [None, None]
        self.facts: list[NodeFacts] = [NodeFacts(), NodeFacts()]
        own = (RecordsArrived(), RecordsProcessed(), Stop())
        copies = (Duplicate(new_nodes=(name,)) for name in self.names)
        self.messages: list[Message] = [*own, *copies]
        self.inboxes: list[Inbox] = [()]
        self.inbox_mentions: list[int] = [0]
        self._state_numbers: dict[NodeState, int] = {}
        self._message_numbers: dict[PeerMessage, int] = {}
        self._inbox_numbers: dict[Inbox, int] = {(): EMPTY}
        self._steps: dict[tuple[int, int], NodeStep] = {}
        self._deliveries: dict[int, tuple[Delivery, ...]] = {}
        self._appended: dict[tuple[int, int, int], int] = {}

    def number_state(self, state: NodeState) -> int:
        """Return the number of a node state."""
        if state.phase is NodePhase.STOPPED:
            return STOPPED
        number = self._state_numbers.get(state)
        if number is None:
            number = self._state_numbers[state] = len(self.states)
            self.states.append(state)
            self.facts.append(self._facts(state))
        return number

    def number_message(self, message: PeerMessage) -> int:
        """Return the number of a message."""
        number = self._message_numbers.get(message)
        if number is None:
            number = self._message_numbers[message] = len(self.messages)
            self.messages.append(message)
        return number

    def number_inbox(self, inbox: Inbox) -> int:
        """Return the number of an inbox."""
        number = self._inbox_numbers.get(inbox)
        if number is None:
            number = self._inbox_numbers[inbox] = len(self.inboxes)
            self.inboxes.append(inbox)
            self.inbox_mentions.append(self._inbox_mask(inbox))
        return number

    def step(self, state: int, message: int) -> NodeStep:
        """Return what a message, a record or a command does to a node."""
        key = (state, message)
        step = self._steps.get(key)
        if step is None:
            step = self._steps[key] = self._handle(state, self.messages[message])
        return step

    def deliveries(self, inbox: int) -> tuple[Delivery, ...]:
        """Return what can be delivered next: the head of each channel, or anything without FIFO."""
        offered = self._deliveries.get(inbox)
        if offered is None:
            offered = self._deliveries[inbox] = tuple(self._offered(self.inboxes[inbox]))
        return offered

    def append(self, inbox: int, sender: int, message: int) -> int:
        """Return the inbox with one more message."""
        key = (inbox, sender, message)
        number = self._appended.get(key)
        if number is None:
            channels = dict(self.inboxes[inbox])
            channels[sender] = (*channels.get(sender, ()), message)
            number = self._appended[key] = self.number_inbox(tuple(sorted(channels.items())))
        return number

    def phase(self, number: int) -> NodePhase:
        """Return what a node does in a state that is not free."""
        state = self.states[number]
        return NodePhase.STOPPED if state is None else state.phase

    def mask(self, nodes: Iterable[str]) -> int:
        """Return the slots of nodes as bits."""
        bits = 0
        for node in nodes:
            bits |= 1 << self.slots[node]
        return bits

    def _handle(self, number: int, message: Message) -> NodeStep:
        state = self.states[number]
        assert state is not None
        after, effects = handle(state, message, self.config.variant)
        sends = tuple(
            (self.slots[effect.to], self.number_message(effect.message))
            for effect in effects
            if isinstance(effect, Send)
        )
        created = next(
            (
                (self.slots[effect.state.node], self.number_state(effect.state))
                for effect in effects
                if isinstance(effect, CreateNode)
            ),
            None,
        )
        return NodeStep(self.number_state(after), sends, created)

    def _facts(self, state: NodeState) -> NodeFacts:
        variant = self.config.variant
        targets: tuple[int, ...] = ()
        if can_process(state):
            targets = tuple(self.slots[node] for node in routes(state, variant))
            if state.operator == len(self.config.instances) - 1:
                targets = (OUTSIDE,)
        return NodeFacts(
            is_quiet=state.phase is NodePhase.ACTIVE and state.pending == 0,
            is_under_way=state.phase in (NodePhase.IDLE, NodePhase.STOPPING),
            targets=targets,
            can_scale=can_scale(state, variant),
            can_stop=can_stop(state, variant),
            accepts_input=state.operator == 0 and accepts_input(state),
            mentions=self.mask(mentioned_nodes(state)),
        )

    def _inbox_mask(self, inbox: Inbox) -> int:
        bits = 0
        for sender, numbers in inbox:
            bits |= 1 << sender
            for number in numbers:
                bits |= self.mask(_message_nodes(self.messages[number]))
        return bits

    def _offered(self, inbox: Inbox) -> Iterable[Delivery]:
        for sender, numbers in inbox:
            positions = range(1) if self.config.is_fifo else range(len(numbers))
            for position in positions:
                if numbers[position] in numbers[:position]:
                    continue
                rest = numbers[:position] + numbers[position + 1 :]
                channels = dict(inbox)
                channels[sender] = rest
                left = tuple(sorted((key, rest) for key, rest in channels.items() if rest))
                yield sender, numbers[position], self.number_inbox(left)


def mentioned_nodes(state: NodeState) -> set[str]:
    """Return every node that a node knows, except keepers that it only knows as such."""
    groups = (state.neighbours, state.departed, state.to_add, state.to_delete)
    known = {node for group in groups for node in group.everyone()}
    return known | state.awaited | set(state.new_nodes)


def _message_nodes(message: Message) -> Iterable[str]:
    match message:
        case StartSignal():
            return message.neighbours.everyone()
        case Duplication():
            return message.new_nodes
        case Deletion():
            return message.receivers
        case _:
            return ()
