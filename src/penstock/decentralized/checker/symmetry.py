"""One representative for states that differ only in the names of interchangeable nodes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice, permutations, product
from typing import Any

from penstock.decentralized.checker.local_tables import EMPTY, FREE, STOPPED, LocalTables
from penstock.decentralized.checker.transitions import GlobalState
from penstock.decentralized.messages import Command, Deletion, Duplication, StartSignal
from penstock.decentralized.node_state import Neighbours, NodeState

#: Orders that are compared; beyond it some equivalent states are explored more than once.
MAX_ORDERS = 64
#: The new slot of each slot.
SlotMap = tuple[int, ...]


class Symmetry:
    """Sorts the nodes of each operator, except its keeper, by what does not depend on names."""

    def __init__(self, tables: LocalTables) -> None:
        self._tables = tables
        self._size = tables.config.max_instances
        self._count = len(tables.names)
        self._identity: SlotMap = tuple(range(self._count))
        self._signatures: dict[Any, int] = {}
        self._state_signatures: list[int] = [-1, 0]
        self._inbox_signatures: list[int] = []
        self._known_orders: dict[tuple[int, GlobalState, GlobalState], list[SlotMap]] = {}
        self._renames: dict[SlotMap, tuple[dict[int, int], dict[int, int]]] = {}

    def canonical(self, state: GlobalState) -> GlobalState:
        """Return the smallest of the equivalent states that keep the nodes sorted."""
        maps = list(self._slot_maps(state))
        if len(maps) == 1:
            return state if maps[0] == self._identity else self._rename(state, maps[0])
        return min(self._rename(state, slot_map) for slot_map in maps)

    def _slot_maps(self, state: GlobalState) -> Iterator[SlotMap]:
        """Yield the maps that sort the nodes; nodes with equal signatures in every order."""
        orders = [self._orders(state, keeper) for keeper in range(0, self._count, self._size)]
        for parts in islice(product(*orders), MAX_ORDERS):
            yield tuple(chain.from_iterable(parts))

    def _orders(self, state: GlobalState, keeper: int) -> list[SlotMap]:
        """Return the new slots of one operator's nodes, in all orders that keep them sorted."""
        end, count = keeper + self._size, self._count
        key = (keeper, state[keeper + 1 : end], state[count + keeper + 1 : count + end])
        known = self._known_orders.get(key)
        if known is None:
            signatures = {slot: self._signature(state, slot) for slot in range(keeper + 1, end)}
            known = [
                (keeper, *(keeper + 1 + order.index(slot) for slot in signatures))
                for order in _sorted_orders(signatures)
            ]
            self._known_orders[key] = known
        return known

    def _signature(self, state: GlobalState, slot: int) -> tuple[int, int]:
        node = state[slot]
        if node == FREE:
            return (1 << 60, slot)  # after all others, never equal
        return self._state_signature(node), self._inbox_signature(state[self._count + slot])

    def _state_signature(self, number: int) -> int:
        known = self._state_signatures
        while len(known) <= number:
            state = self._tables.states[len(known)]
            assert state is not None
            known.append(self._number(self._describe_state(state)))
        return known[number]

    def _inbox_signature(self, number: int) -> int:
        known = self._inbox_signatures
        while len(known) <= number:
            inbox = self._tables.inboxes[len(known)]
            described = sorted(
                (self._class(sender), tuple(map(self._describe_message, messages)))
                for sender, messages in inbox
            )
            known.append(self._number(("inbox", *described)))
        return known[number]

    def _number(self, described: object) -> int:
        return self._signatures.setdefault(described, len(self._signatures) + 1)

    def _class(self, slot: int) -> tuple[int, bool]:
        return slot // self._size, slot % self._size == 0

    def _classes(self, nodes: Iterable[str]) -> tuple[tuple[int, bool], ...]:
        return tuple(sorted(self._class(self._tables.slots[node]) for node in nodes))

    def _describe(self, neighbours: Neighbours) -> tuple[object, ...]:
        return self._classes(neighbours.successors), self._classes(neighbours.predecessors)

    def _describe_state(self, state: NodeState) -> tuple[object, ...]:
        groups = (state.neighbours, state.departed, state.to_add, state.to_delete)
        return (
            state.phase.value,
            state.pending,
            self._classes(state.awaited),
            self._classes(state.new_nodes),
            *map(self._describe, groups),
        )

    def _describe_message(self, number: int) -> str:
        message = self._tables.messages[number]
        detail: object = None
        if isinstance(message, StartSignal):
            detail = self._describe(message.neighbours)
        return f"{type(message).__name__} {detail}"

    def _rename(self, state: GlobalState, slot_map: SlotMap) -> GlobalState:
        states, inboxes = self._renames.setdefault(slot_map, ({}, {}))
        count, after = self._count, list(state)
        for slot, new in enumerate(slot_map):
            number, inbox = state[slot], state[count + slot]
            renamed = states.get(number)
            if renamed is None:
                renamed = states[number] = self._rename_state(number, slot_map)
            contents = inboxes.get(inbox)
            if contents is None:
                contents = inboxes[inbox] = self._rename_inbox(inbox, slot_map)
            after[new], after[count + new] = renamed, contents
        return tuple(after)

    def _rename_state(self, number: int, slot_map: SlotMap) -> int:
        state = self._tables.states[number]
        if number in (FREE, STOPPED) or state is None:
            return number
        name = _Renaming(self._tables.names, slot_map)
        return self._tables.number_state(
            replace(
                state,
                node=name.node(state.node),
                neighbours=name.neighbours(state.neighbours),
                awaited=name.nodes(state.awaited),
                new_nodes=tuple(map(name.node, state.new_nodes)),
                departed=name.neighbours(state.departed),
                to_add=name.neighbours(state.to_add),
                to_delete=name.neighbours(state.to_delete),
            )
        )

    def _rename_inbox(self, number: int, slot_map: SlotMap) -> int:
        if number == EMPTY:
            return EMPTY
        name = _Renaming(self._tables.names, slot_map)
        channels = (
            (slot_map[sender], tuple(self._rename_message(each, name) for each in messages))
            for sender, messages in self._tables.inboxes[number]
        )
        return self._tables.number_inbox(tuple(sorted(channels)))

    def _rename_message(self, number: int, name: "_Renaming") -> int:
        message = self._tables.messages[number]
        if isinstance(message, Command):  # a record
            return number
        changes: dict[str, Any] = {"sender": name.node(message.sender)}
        if isinstance(message, Duplication):
            changes["new_nodes"] = tuple(map(name.node, message.new_nodes))
        elif isinstance(message, StartSignal):
            changes["neighbours"] = name.neighbours(message.neighbours)
        elif isinstance(message, Deletion):
            changes["receivers"] = name.nodes(message.receivers)
        return self._tables.number_message(replace(message, **changes))


class _Renaming:
    """New names of nodes."""

    def __init__(self, names: Sequence[str], slot_map: SlotMap) -> None:
        self._new = {names[slot]: names[new] for slot, new in enumerate(slot_map)}

    def node(self, node: str) -> str:
        return self._new[node]

    def nodes(self, nodes: Iterable[str]) -> frozenset[str]:
        return frozenset(map(self.node, nodes))

    def neighbours(self, old: Neighbours) -> Neighbours:
        return Neighbours(self.nodes(old.successors), self.nodes(old.predecessors))


def _sorted_orders(signatures: dict[int, tuple[int, int]]) -> Iterator[tuple[int, ...]]:
    ranked = sorted(signatures, key=signatures.__getitem__)
    ties = [tuple(group) for _, group in groupby(ranked, key=signatures.__getitem__)]
    for choice in product(*map(permutations, ties)):
        yield tuple(chain.from_iterable(choice))
