"""Packs slices on hosts: first fit in decreasing CPU, within a CPU target."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from penstock.core.numbers import NOISE
from penstock.core.snapshot import HostSnapshot, SliceSnapshot


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
        return (
            self.cpu + piece.cpu <= target + NOISE
            and _within(self.memory + piece.memory, self.memory_capacity)
            and _within(self.network + piece.network, self.network_capacity)
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
    new_room: Callable[[], HostRoom] | None = None,
) -> tuple[dict[str, str], list[HostRoom]] | None:
    """Place slices in decreasing CPU; return slice -> host and the rooms, or None.

    Where a slice fits nowhere a new host takes it, if there is a way to make one; an
    empty host takes any slice, for there is no better place.
    """
    rooms = list(rooms)
    placed: dict[str, str] = {}
    for name, piece in sorted(slices.items(), key=lambda item: (-item[1].cpu, item[0])):
        here = next((i for i, room in enumerate(rooms) if room.fits(piece, target)), None)
        if here is None:
            if new_room is None:
                return None
            rooms.append(new_room())
            here = len(rooms) - 1
        rooms[here] = rooms[here].with_slice(piece)
        placed[name] = rooms[here].name
    return placed, rooms


def _within(amount: float, capacity: float | None) -> bool:
    return capacity is None or amount <= capacity + NOISE
