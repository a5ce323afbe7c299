"""What one node knows: its neighbours, what it waits for, and what is still in its queue."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

NodeId = str


class Side(Enum):
    """On which side of a node a neighbour is."""

    SUCCESSOR = "successor"
    PREDECESSOR = "predecessor"


class NodePhase(Enum):
    """What a node is doing."""

    IDLE = "idle"  # exists, waits for its start signal
    ACTIVE = "active"
    DUPLICATING = "duplicating"  # works, waits for acks before it starts new siblings
    STOPPING = "stopping"  # works off its queue, waits for acks before it stops
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class Neighbours:
    """Two sets of nodes: those that a node sends records to, and those that send to it."""

    successors: frozenset[NodeId] = frozenset()
    predecessors: frozenset[NodeId] = frozenset()

    def on(self, side: Side) -> frozenset[NodeId]:
        """Return the neighbours on one side."""
        return self.successors if side is Side.SUCCESSOR else self.predecessors

    def everyone(self) -> frozenset[NodeId]:
        """Return the neighbours on both sides."""
        return self.successors | self.predecessors

    def add(self, side: Side, nodes: Iterable[NodeId]) -> "Neighbours":
        """Return these neighbours and more on one side."""
        return self._with(side, self.on(side).union(nodes))

    def remove(self, side: Side, node: NodeId) -> "Neighbours":
        """Return these neighbours without one node on one side."""
        return self._with(side, self.on(side) - {node})

    def union(self, other: "Neighbours") -> "Neighbours":
        """Return the nodes that are in either value, side by side."""
        return Neighbours(
            self.successors | other.successors, self.predecessors | other.predecessors
        )

    def without(self, other: "Neighbours") -> "Neighbours":
        """Return the nodes that are not in the other value, side by side."""
        return Neighbours(
            self.successors - other.successors, self.predecessors - other.predecessors
        )

    def _with(self, side: Side, nodes: frozenset[NodeId]) -> "Neighbours":
        if side is Side.SUCCESSOR:
            return Neighbours(nodes, self.predecessors)
        return Neighbours(self.successors, nodes)


NOBODY = Neighbours()


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeState:
    """The state of one instance of an operator; only `protocol.handle` makes new ones."""

    node: NodeId
    #: Position of the operator in the pipeline, from 0.
    operator: int
    phase: NodePhase
    is_keeper: bool = False
    #: The keeper of the next operator, which never stops; None in the last operator.
    next_keeper: NodeId | None = None
    neighbours: Neighbours = NOBODY
    #: Records in the node's queue.
    pending: int = 0
    #: Nodes whose acks a duplication or deletion still waits for.
    awaited: frozenset[NodeId] = frozenset()
    #: New siblings that wait for their start signal.
    new_nodes: tuple[NodeId, ...] = ()
    #: Neighbours that left during the duplication and told the new siblings.
    departed: Neighbours = NOBODY
    #: News that reached an idle node: the paper's sets *ToAdd and *ToDelete.
    to_add: Neighbours = NOBODY
    to_delete: Neighbours = NOBODY


def build_pipeline(operators: Sequence[Sequence[NodeId]]) -> dict[NodeId, NodeState]:
    """Return the active nodes of a pipeline; the first node of each operator is its keeper.

    >>> nodes = build_pipeline([["a"], ["b", "b2"], ["c"]])
    >>> sorted(nodes["a"].neighbours.successors), nodes["a"].next_keeper
    (['b', 'b2'], 'b')
    """
    padded = [(), *operators, ()]
    return {
        node: NodeState(
            node=node,
            operator=position,
            phase=NodePhase.ACTIVE,
            is_keeper=node == nodes[0],
            next_keeper=padded[position + 2][0] if padded[position + 2] else None,
            neighbours=Neighbours(frozenset(padded[position + 2]), frozenset(padded[position])),
        )
        for position, nodes in enumerate(operators)
        for node in nodes
    }


def idle_sibling(state: NodeState, node: NodeId) -> NodeState:
    """Return a new node of the same operator that waits for its start signal."""
    return NodeState(
        node=node, operator=state.operator, phase=NodePhase.IDLE, next_keeper=state.next_keeper
    )
