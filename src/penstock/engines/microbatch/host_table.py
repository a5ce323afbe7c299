"""Which slice is on which host, and what follows for the replicas of each operator. Pure.

A host is a name with one replica of each operator that has slices there. So the table gives each
operator its number of replicas, and each of its slices a replica to stay on.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.core.decision import Move
from penstock.core.frozen_dict import FrozenDict
from penstock.errors import InputError, nearest

VERSION = 1


def name_slice(operator: str, number: int) -> str:
    """Return the name of a slice.

    >>> name_slice("count", 3)
    'count/3'
    """
    return f"{operator}/{number}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostTable:
    """Hosts by name in the order of their start, and the host of each slice."""

    hosts: tuple[str, ...]
    homes: Mapping[str, str]
    #: Hosts that were ever started: names are not used again.
    started: int

    @classmethod
    def spread(cls, slices: Mapping[str, int], hosts: int) -> "HostTable":
        """Return a first placement: operator by operator, as many slices on each host.

        >>> table = HostTable.spread({"match": 4, "access": 2}, 3)
        >>> table.hosts_of("access"), table.hosts_of("match")
        (('h1',), ('h2', 'h3'))
        """
        order = sorted(slices, key=lambda operator: (slices[operator], operator))
        names = [name_slice(operator, n) for operator in order for n in range(slices[operator])]
        homes = {name: f"h{at * hosts // len(names) + 1}" for at, name in enumerate(names)}
        all_hosts = tuple(f"h{number}" for number in range(1, hosts + 1))
        return cls(hosts=all_hosts, homes=FrozenDict(homes), started=hosts)

    def hosts_of(self, operator: str) -> tuple[str, ...]:
        """Return the host of each replica of an operator, in the order of replicas."""
        used = {home for name, home in self.homes.items() if name.rpartition("/")[0] == operator}
        return tuple(host for host in self.hosts if host in used)

    def pins(self, operator: str) -> dict[int, int]:
        """Return the replica of each slice of an operator."""
        replicas = {host: index for index, host in enumerate(self.hosts_of(operator))}
        return {
            int(number): replicas[home]
            for name, home in self.homes.items()
            for own, _, number in [name.rpartition("/")]
            if own == operator
        }

    def slices_of(self, host: str) -> list[str]:
        """Return the slices on a host."""
        return [name for name, home in self.homes.items() if home == host]

    def move(self, moves: Sequence[Move]) -> "HostTable":
        """Return the table after some moves; an unknown destination is a new host.

        Hosts without slices end. `InputError` for a slice that is not where the move says.
        """
        homes, hosts, started = dict(self.homes), list(self.hosts), self.started
        new: dict[str, str] = {}
        for move in moves:
            if move.slice not in homes:
                hint = nearest(move.slice, homes)
                raise InputError(f"moves.{move.slice}", "unknown slice", hint)
            if homes[move.slice] != move.source:
                problem = f"is on host {homes[move.slice]}, not on {move.source}"
                raise InputError(f"moves.{move.slice}", problem)
            name = move.destination
            if name not in self.hosts:
                if name not in new:
                    started += 1
                    new[name] = f"h{started}"
                    hosts.append(new[name])
                name = new[name]
            homes[move.slice] = name
        used = set(homes.values())
        return HostTable(
            hosts=tuple(host for host in hosts if host in used),
            homes=FrozenDict(homes),
            started=started,
        )

    def fits(self, slices: Mapping[str, int]) -> bool:
        """Whether it places exactly these slices."""
        names = {name_slice(operator, n) for operator, size in slices.items() for n in range(size)}
        return names == set(self.homes)

    def to_json(self) -> dict[str, Any]:
        """Write as plain dictionaries."""
        return {
            "version": VERSION,
            "hosts": list(self.hosts),
            "homes": dict(self.homes),
            "started": self.started,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "HostTable":
        """Read what `to_json` wrote; `InputError` for another version."""
        if data.get("version") != VERSION:
            raise InputError("hosts.json", f"has version {data.get('version')}, not {VERSION}")
        return cls(
            hosts=tuple(data["hosts"]), homes=FrozenDict(data["homes"]), started=data["started"]
        )


def find_operators(moves: Iterable[Move]) -> set[str]:
    """Return the operators whose slices move."""
    return {move.slice.rpartition("/")[0] for move in moves}
