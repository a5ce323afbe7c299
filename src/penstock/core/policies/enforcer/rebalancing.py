"""Moves slices away from busy hosts, and empties idle ones."""

from collections.abc import Mapping, Sequence
from itertools import count

from penstock.core.decision import Move
from penstock.core.policies.enforcer.packing import HostRoom, first_fit_decreasing
from penstock.core.policies.enforcer.subset_sum import Item, cheapest_worth
from penstock.core.snapshot import HostSnapshot, SliceSnapshot

Hosts = Mapping[str, HostSnapshot]


def relieve(hosts: Hosts, busy: Sequence[HostSnapshot], target: float) -> tuple[list[Move], int]:
    """Shed, from each busy host, the lightest slices that bring it to the target."""
    shed: dict[str, tuple[str, SliceSnapshot]] = {}
    for host in sorted(busy, key=lambda host: (-host.load, host.name)):
        items = [Item(name, piece.cpu, piece.memory) for name, piece in host.slices.items()]
        for name in cheapest_worth(items, host.load - target) or ():
            shed[name] = (host.name, host.slices[name])
    rooms = [HostRoom.of(host, without=shed) for host in hosts.values()]
    fresh = (f"new-{i}" for i in count(1))
    largest = max((r.memory_capacity for r in rooms if r.memory_capacity is not None), default=None)
    widest = max(
        (r.network_capacity for r in rooms if r.network_capacity is not None), default=None
    )

    def new_room() -> HostRoom:
        name = next(name for name in fresh if name not in hosts)
        return HostRoom(name, 0.0, 0.0, 0.0, largest, widest)

    pieces = {name: piece for name, (_, piece) in shed.items()}
    packed = first_fit_decreasing(pieces, rooms, target, new_room)
    placed, rooms = packed if packed else ({}, rooms)
    moves = [Move(name, shed[name][0], to) for name, to in placed.items() if shed[name][0] != to]
    return moves, len(rooms)


def release(hosts: Hosts, idle: Sequence[HostSnapshot], target: float) -> tuple[list[Move], int]:
    """Empty idle hosts one after the other, each only if all its slices fit elsewhere."""
    leaving = {host.name for host in idle}
    rooms = [HostRoom.of(host) for host in hosts.values() if host.name not in leaving]
    moves: list[Move] = []
    for host in idle:
        packed = first_fit_decreasing(host.slices, rooms, target)
        if packed is None:
            rooms.append(HostRoom.of(host))  # it stays, and may take what others give up
            continue
        placed, rooms = packed
        moves += [Move(name, host.name, to) for name, to in placed.items()]
    return moves, len(rooms)
