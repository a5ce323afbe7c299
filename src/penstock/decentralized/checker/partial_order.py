"""Steps whose order does not matter: one order of them is explored.

A step may be taken at once, and all others of the state later, if it commutes with every step that
another order could take before it, disables none of them and hides no violation. Here these are
the following steps. None of them can be repeated for ever, so no other step is put off for ever.

- A deletion ack: until the last one comes, nothing depends on it; after the last one, anything
  that still reaches the stopped node is a violation, and nobody can know whether it has stopped.
- A duplication ack that is not the last one.
- A start signal: a message that reaches the new node leaves the same sets before and after it.
- News or a record that reach a stopping node whose deletion the sender has not acknowledged: the
  node ignores news and cannot stop before. The ack of news and a last result to the
  same node do not commute, so news from the keeper that gets the last results are left out.
- A last result of a stopping node, once that keeper has acknowledged its deletion.
- A record that reaches a keeper, which never stops.
- A record that the last operator processes: nothing is sent.
"""

from penstock.decentralized.checker.local_tables import OUTSIDE, RECORD, STOPPED
from penstock.decentralized.checker.transitions import GlobalState, Successor, Transitions
from penstock.decentralized.messages import (
    Deletion,
    DeletionAck,
    Duplication,
    DuplicationAck,
    StartSignal,
)
from penstock.decentralized.node_state import NodePhase


class PartialOrder:
    """Finds a step that may be taken before all others."""

    def __init__(self, transitions: Transitions) -> None:
        self._transitions = transitions
        self._tables = transitions.tables
        self._last_operator = len(transitions.config.instances) - 1
        self._known: dict[tuple[int, int, int], bool] = {}
        self._known_results: dict[int, bool] = {}

    def commuting_step(self, state: GlobalState) -> Successor | None:
        """Return a step that commutes with every other one, or None."""
        count, tables = self._transitions.slot_count, self._tables
        for slot in range(count):
            node = state[slot]
            if node <= STOPPED:
                continue
            targets = tables.facts[node].targets
            if targets and self._result_commutes(node):
                return self._transitions.process(state, slot, targets[0])
            if inbox := state[count + slot]:
                for delivery in tables.deliveries(inbox):
                    if self._commutes(node, delivery[0], delivery[1]):
                        return self._transitions.deliver(state, slot, delivery)
        return None

    def _result_commutes(self, node: int) -> bool:
        known = self._known_results.get(node)
        if known is None:
            state, targets = self._tables.states[node], self._tables.facts[node].targets
            assert state is not None
            known = self._known_results[node] = targets == (OUTSIDE,) or (
                state.phase is NodePhase.STOPPING and state.next_keeper not in state.awaited
            )
        return known

    def _commutes(self, node: int, sender: int, message: int) -> bool:
        key = (node, sender, message)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._decide(*key)
        return known

    def _decide(self, node: int, sender: int, message: int) -> bool:
        state, name = self._tables.states[node], self._tables.names[sender]
        assert state is not None
        is_awaited = state.phase is NodePhase.STOPPING and name in state.awaited
        if message == RECORD:
            return state.is_keeper or is_awaited
        match self._tables.messages[message]:
            case DeletionAck() | StartSignal():
                return True
            case DuplicationAck():
                return len(state.awaited) > 1
            case Duplication() | Deletion():
                return is_awaited and name != state.next_keeper
            case _:
                return False
