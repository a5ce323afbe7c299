"""A pipeline in memory for tests: FIFO channels, numbered records, transitions to choose from."""

from collections import deque
from collections.abc import Callable
from functools import partial

from penstock.decentralized.messages import (
    CreateNode,
    Duplicate,
    Effect,
    Message,
    NodeStopped,
    PeerMessage,
    RecordsArrived,
    RecordsProcessed,
    Send,
    Stop,
)
from penstock.decentralized.node_state import NodeId, NodePhase, NodeState, build_pipeline
from penstock.decentralized.protocol import (
    accepts_input,
    can_process,
    can_scale,
    can_stop,
    handle,
    routes,
)

Transition = Callable[[], None]


class Network:
    """Nodes, the channels between them, and the records that are on the way."""

    ARRIVED, PROCESSED = RecordsArrived(), RecordsProcessed()

    @staticmethod
    def own_message(step: str, peer: NodeId | None) -> Message:
        """The command of a decision, or a record from outside."""
        if step == "duplicate":
            assert peer is not None
            return Duplicate(new_nodes=(peer,))
        return Stop() if step == "stop" else RecordsArrived()

    def __init__(self, *operators: int) -> None:
        names = [[f"{op}.{index}" for index in range(n)] for op, n in enumerate(operators)]
        self.nodes = build_pipeline(names)
        self.channels: dict[tuple[NodeId, NodeId], deque[PeerMessage | int]] = {}
        self.queues: dict[NodeId, deque[int]] = {node: deque() for node in self.nodes}
        self.last_operator = len(operators) - 1
        self.offered = 0
        self.results: list[int] = []
        self.messages = 0
        self._ids = 0

    def command(self, node: NodeId, message: Message) -> tuple[Effect, ...]:
        """Let a node handle a message and carry out its effects."""
        self.nodes[node], effects = handle(self.nodes[node], message)
        for effect in effects:
            match effect:
                case Send(to=to, message=content):
                    self.messages += 1
                    self._put(node, to, content)
                case CreateNode(state=state):
                    assert state.node not in self.nodes
                    self.nodes[state.node], self.queues[state.node] = state, deque()
                case NodeStopped():
                    assert not self.queues[node]
        return effects

    def deliver(self, sender: NodeId, to: NodeId) -> None:
        """Deliver the next item of a channel."""
        item = self.channels[sender, to].popleft()
        assert self.nodes[to].phase is not NodePhase.STOPPED, f"{item} reached a stopped node"
        if isinstance(item, int):
            self.queues[to].append(item)
            self.command(to, RecordsArrived())
        else:
            self.command(to, item)

    def offer(self, node: NodeId) -> None:
        """Let a node of the first operator take a record from outside."""
        self.queues[node].append(self.offered)
        self.offered += 1
        self.command(node, RecordsArrived())

    def process(self, node: NodeId, to: NodeId | None) -> None:
        """Process the next record of a node's queue."""
        record = self.queues[node].popleft()
        if to is None:
            self.results.append(record)
        else:
            self._put(node, to, record)
        self.command(node, RecordsProcessed())

    def duplicate(self, node: NodeId, copies: int = 1) -> tuple[NodeId, ...]:
        """Let a node decide to duplicate itself; return the new ids."""
        self._ids += copies
        first = self._ids - copies
        ids = tuple(f"{node[0]}.new{first + index}" for index in range(copies))
        self.command(node, Duplicate(new_nodes=ids))
        return ids

    def decisions(self) -> list[Transition]:
        """Decisions and records from outside that are possible now."""
        enabled: list[Transition] = []
        for node, state in self.nodes.items():
            if can_scale(state):
                enabled += [partial(self.duplicate, node), partial(self.duplicate, node, 2)]
            if can_stop(state):
                enabled.append(partial(self.command, node, Stop()))
            if state.operator == 0 and accepts_input(state):
                enabled.append(partial(self.offer, node))
        return enabled

    def reactions(self) -> list[Transition]:
        """Deliveries and processing that are possible now."""
        enabled: list[Transition] = [
            partial(self.deliver, *ends) for ends, items in self.channels.items() if items
        ]
        for node, state in self.nodes.items():
            if can_process(state):
                targets = routes(state) if state.operator < self.last_operator else (None,)
                enabled += [partial(self.process, node, to) for to in targets]
        return enabled

    def settle(self) -> None:
        """Deliver and process until nothing is left."""
        while reactions := self.reactions():
            reactions[0]()

    def members(self, operator: int) -> list[NodeState]:
        """The nodes of an operator that have not stopped."""
        return [
            state
            for state in self.nodes.values()
            if state.operator == operator and state.phase is not NodePhase.STOPPED
        ]

    def assert_quiet_and_consistent(self) -> None:
        """Nothing is under way, neighbours agree, every record came out once."""
        assert sorted(self.results) == list(range(self.offered))
        for state in self.nodes.values():
            if state.phase is NodePhase.STOPPED:
                continue
            assert state.phase is NodePhase.ACTIVE, state
            before = {s.node for s in self.members(state.operator - 1)}
            after = {s.node for s in self.members(state.operator + 1)}
            assert state.neighbours.predecessors == before, state
            assert state.neighbours.successors == after, state

    def _put(self, sender: NodeId, to: NodeId, item: PeerMessage | int) -> None:
        self.channels.setdefault((sender, to), deque()).append(item)
