"""Moves slices between hosts: away from busy hosts, and off idle ones until they are empty.

Slices are placed first fit in decreasing CPU, within a CPU target.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from penstock.core.decision import Move
from penstock.core.numbers import NOISE
from penstock.core.policies.enforcer.subset_sum import Item, cheapest_worth
from penstock.core.snapshot import HostSnapshot, SliceSnapshot

Hosts = Mapping[str, HostSnapshot]


def relieve(
    hosts: Hosts, busy: Sequence[HostSnapshot], target: float, most: int | None = None
) -> tuple[list[Move], int]:
    """Shed, from each busy host, the lightest slices that bring it to the target.

    There are at most so many hosts afterwards, if a number is given.
    """
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

    def new_room(present: int) -> HostRoom | None:
        if most is not None and present >= most:
            return None
        name = next(name for name in fresh if name not in hosts)
        return HostRoom(name, 0.0, 0.0, 0.0, largest, widest)

    pieces = {name: piece for name, (_, piece) in shed.items()}
    packed = first_fit_decreasing(pieces, rooms, target, new_room)
    assert packed is not None  # only without new hosts a slice may find no place
    placed, rooms = packed
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


@dataclass(frozen=True, slots=True)
class HostRoom:
    """The load and the capacity of a host while slices are placed."""

    name: str
    cpu: float
    memory: float
    network: float
    memory_capacity: float | None = None
    network_capacity: float | None = None

    @classmethod
    def of(cls, host: HostSnapshot, without: Iterable[str] = ()) -> "HostRoom":
        """Build the room of a host without some of its slices."""
        gone = set(without)
        left = [piece for name, piece in host.slices.items() if name not in gone]
        return cls(
            host.name,
            sum(piece.cpu for piece in left),
            sum(piece.memory for piece in left),
            sum(piece.network for piece in left),
            host.memory_capacity,
            host.network_capacity,
        )

    def fits(self, piece: SliceSnapshot, target: float) -> bool:
        """Whether the host stays within the CPU target and its own capacities."""
        return self.cpu + piece.cpu <= target + NOISE and self.can_hold(piece)

    def can_hold(self, piece: SliceSnapshot) -> bool:
        """Whether the host stays within its own capacities, however busy it is."""
        return _within(self.memory + piece.memory, self.memory_capacity) and _within(
            self.network + piece.network, self.network_capacity
        )

    def with_slice(self, piece: SliceSnapshot) -> "HostRoom":
        """Return the room with a slice added."""
        return HostRoom(
            self.name,
            self.cpu + piece.cpu,
            self.memory + piece.memory,
            self.network + piece.network,
            self.memory_capacity,
            self.network_capacity,
        )


def first_fit_decreasing(
    slices: Mapping[str, SliceSnapshot],
    rooms: Sequence[HostRoom],
    target: float,
    new_room: Callable[[int], HostRoom | None] | None = None,
) -> tuple[dict[str, str], list[HostRoom]] | None:
    """Place slices in decreasing CPU; return slice -> host and the rooms, or None.

    A slice that fits nowhere goes to a new host, if `new_room` can make one beside so many, and
    otherwise to the least busy one. An empty host takes any slice: there is no better place.
    """
    rooms = list(rooms)
    placed: dict[str, str] = {}
    smallest = min((piece.cpu for piece in slices.values()), default=0.0)
    # a host without room for the smallest slice is not looked at again for any other
    open_places = [i for i, room in enumerate(rooms) if room.cpu + smallest <= target + NOISE]
    for name, piece in sorted(slices.items(), key=lambda item: (-item[1].cpu, item[0])):
        here = next((i for i in open_places if rooms[i].fits(piece, target)), None)
        if here is None:
            if new_room is None:
                return None
            if (room := new_room(len(rooms))) is not None:
                rooms.append(room)
                here = len(rooms) - 1
                open_places.append(here)
            else:
                here = _find_least_busy(rooms, piece)
        rooms[here] = rooms[here].with_slice(piece)
        if rooms[here].cpu + smallest > target + NOISE and here in open_places:
            open_places.remove(here)
        placed[name] = rooms[here].name
    return placed, rooms


def _find_least_busy(rooms: Sequence[HostRoom], piece: SliceSnapshot) -> int:
    """Return the least busy host that can hold a slice; if none can, the least busy one."""
    able = [i for i, room in enumerate(rooms) if room.can_hold(piece)]
    return min(able or range(len(rooms)), key=lambda i: rooms[i].cpu)


def _within(amount: float, capacity: float | None) -> bool:
    return capacity is None or amount <= capacity + NOISE
