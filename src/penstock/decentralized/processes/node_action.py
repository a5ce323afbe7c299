"""The scaling actions of a node: what it decided, how long the protocol took, what it cost."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from penstock.decentralized.node_state import NodePhase, NodeState

DUPLICATION, DELETION = "duplication", "deletion"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeAction:
    """A duplication whose new nodes have got their start signal, or a node that has stopped."""

    node: str
    operator: str
    kind: str
    #: When the decision was made, in seconds of the run.
    at_s: float
    #: How long the protocol took.
    took_s: float
    #: New nodes of a duplication.
    copies: int
    #: Successors and predecessors at the beginning.
    neighbours: int

    @property
    def expected_messages(self) -> int:
        """The messages by the paper's formula: announcement and ack per neighbour, and starts."""
        return 2 * self.neighbours + self.copies

    def to_json(self) -> dict[str, Any]:
        """Return the action as JSON."""
        return asdict(self)


class ActionLog:
    """Follows the phases of one node, and collects its finished actions."""

    def __init__(self, node: str, operator: str, clock: Callable[[], float]) -> None:
        self._node, self._operator, self._clock = node, operator, clock
        self._began_s, self._copies, self._neighbours = 0.0, 0, 0
        self._finished: list[NodeAction] = []

    def note(self, before: NodeState, after: NodeState) -> None:
        """Compare the states before and after a message."""
        if before.phase is after.phase:
            return
        if after.phase in (NodePhase.DUPLICATING, NodePhase.STOPPING):
            self._began_s, self._copies = self._clock(), len(after.new_nodes)
            self._neighbours = len(before.neighbours.everyone())
        elif before.phase is NodePhase.DUPLICATING:
            self._finish(DUPLICATION)
        elif after.phase is NodePhase.STOPPED:
            self._finish(DELETION)

    def take_finished(self) -> list[NodeAction]:
        """Return the actions that ended since the last call."""
        finished, self._finished = self._finished, []
        return finished

    def _finish(self, kind: str) -> None:
        self._finished.append(
            NodeAction(
                node=self._node,
                operator=self._operator,
                kind=kind,
                at_s=round(self._began_s, 3),
                took_s=round(self._clock() - self._began_s, 4),
                copies=self._copies,
                neighbours=self._neighbours,
            )
        )
