"""Commands, messages and effects of the protocol."""

from dataclasses import dataclass

from penstock.decentralized.node_state import Neighbours, NodeId, NodeState


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplicate:
    """The node's own decision: start one new sibling per id; no other node ever had these ids."""

    new_nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """The node's own decision: leave the pipeline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsArrived:
    """Records reached the node and wait in its queue."""

    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsProcessed:
    """Records left the queue, and their results are on the way to a member of `routes`."""

    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Duplication:
    """The sender duplicates itself: the new nodes become neighbours of the receiver."""

    sender: NodeId
    operator: int
    new_nodes: tuple[NodeId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DuplicationAck:
    """The sender has noted the receiver's new siblings."""

    sender: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class StartSignal:
    """A new node gets its neighbours and begins to work."""

    sender: NodeId
    neighbours: Neighbours


@dataclass(frozen=True, slots=True, kw_only=True)
class Deletion:
    """The sender is about to stop: the receiver must send it nothing more but the ack."""

    sender: NodeId
    operator: int
    #: Everyone who gets this message.
    receivers: frozenset[NodeId]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionAck:
    """The sender has removed the receiver from its neighbours."""

    sender: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    """Effect: deliver a message; in order with all else that goes from this node to that one."""

    to: NodeId
    message: "PeerMessage"


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNode:
    """Effect: let a new node exist, so that it can receive messages."""

    state: NodeState


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStopped:
    """Effect: the node is finished; nothing will reach it any more."""

    node: NodeId


Command = Duplicate | Stop | RecordsArrived | RecordsProcessed
PeerMessage = Duplication | DuplicationAck | StartSignal | Deletion | DeletionAck
Message = Command | PeerMessage
Effect = Send | CreateNode | NodeStopped
