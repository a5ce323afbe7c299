"""What must hold in every state of the pipeline."""

from dataclasses import dataclass
from enum import Enum

from penstock.decentralized.checker.local_tables import RECORD, STOPPED, LocalTables
from penstock.decentralized.checker.transitions import GlobalState, Transitions


class Invariant(Enum):
    """The invariants by the name that reports use."""

    NO_RECORD_LOST = "no record is lost or reaches a stopped node"
    NO_MESSAGE_LOST = "no message reaches a stopped node"
    KEEPER_STAYS = "each operator has its keeper"
    NEIGHBOURS_AGREE = "when the network is quiet, successors and predecessors agree"
    ACTIONS_END = "every action ends: a quiet state can be reached without new decisions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """An invariant that does not hold, and what is wrong."""

    invariant: Invariant
    problem: str


class InvariantCheck:
    """Finds violations in single states."""

    def __init__(self, transitions: Transitions) -> None:
        self._transitions = transitions
        self._tables: LocalTables = transitions.tables
        self._count = transitions.slot_count

    def is_quiet(self, state: GlobalState) -> bool:
        """Whether nothing is under way: no message, no record, no action."""
        facts = self._tables.facts
        return not any(state[self._count : 2 * self._count]) and all(
            facts[node].is_quiet for node in state[: self._count]
        )

    def find_violation(self, state: GlobalState) -> Violation | None:
        """Return what is wrong in a state, whether it is quiet or not."""
        if STOPPED in state[: self._count]:
            return self._find_loss(state) or self._find_missing_keeper(state)
        return None

    def find_disagreement(self, quiet: GlobalState) -> Violation | None:
        """Return two neighbours of which one does not know the other."""
        size = self._transitions.config.max_instances
        nodes = [slot for slot in range(self._count) if quiet[slot] > STOPPED]
        for slot in nodes:
            state = self._tables.states[quiet[slot]]
            assert state is not None
            for offset, known in (
                (1, state.neighbours.successors),
                (-1, state.neighbours.predecessors),
            ):
                there = {
                    self._tables.names[peer]
                    for peer in nodes
                    if peer // size == slot // size + offset
                }
                if known != there:
                    word = "successors" if offset == 1 else "predecessors"
                    problem = (
                        f"{state.node} has the {word} {_list(known)}, there are {_list(there)}"
                    )
                    return Violation(invariant=Invariant.NEIGHBOURS_AGREE, problem=problem)
        return None

    def _find_loss(self, state: GlobalState) -> Violation | None:
        for slot in range(self._count):
            if state[slot] != STOPPED or not state[self._count + slot]:
                continue
            inbox = self._tables.inboxes[state[self._count + slot]]
            numbers = {number for _, messages in inbox for number in messages}
            name = self._tables.names[slot]
            if RECORD in numbers:
                problem = f"a record is on the way to {name}, which has stopped"
                return Violation(invariant=Invariant.NO_RECORD_LOST, problem=problem)
            problem = f"a message is on the way to {name}, which has stopped"
            return Violation(invariant=Invariant.NO_MESSAGE_LOST, problem=problem)
        return None

    def _find_missing_keeper(self, state: GlobalState) -> Violation | None:
        for slot in self._transitions.keepers:
            if state[slot] == STOPPED:
                problem = f"{self._tables.names[slot]}, the keeper of its operator, has stopped"
                return Violation(invariant=Invariant.KEEPER_STAYS, problem=problem)
        return None


def _list(nodes: frozenset[str] | set[str]) -> str:
    return "{" + ", ".join(sorted(nodes)) + "}"
