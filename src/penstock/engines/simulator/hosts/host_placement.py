"""Which slice runs on which host: the first placement, moves, new hosts and released ones."""

from collections.abc import Sequence
from itertools import count

import numpy as np

from penstock.core.decision import Move
from penstock.engines.simulator.hosts.slice_table import IntArray, SliceTable
from penstock.errors import InputError, nearest


class HostPlacement:
    """Hosts by name, and the host of each slice."""

    def __init__(self, table: SliceTable, hosts: int) -> None:
        self._rows = {name: row for row, name in enumerate(table.names)}
        self._numbers = count(hosts + 1)
        #: Names of the hosts that run; `home` has their numbers.
        self.hosts = [f"h{number}" for number in range(1, hosts + 1)]
        self.home = spread_slices(table, hosts)

    def slices_of(self, host: str) -> list[int]:
        """Return the slices on a host."""
        return np.flatnonzero(self.home == self.hosts.index(host)).tolist()

    @property
    def used(self) -> int:
        """Hosts that have slices."""
        return len(set(self.home.tolist()))

    def check_moves(self, moves: Sequence[Move]) -> None:
        """Refuse moves of unknown slices, or from hosts where they are not."""
        for move in moves:
            if move.slice not in self._rows:
                hint = nearest(move.slice, self._rows)
                raise InputError(f"moves.{move.slice}", "unknown slice", hint)
            host = self.hosts[self.home[self._rows[move.slice]]]
            if move.source != host:
                problem = f"is on host {host}, not on {move.source}"
                raise InputError(f"moves.{move.slice}", problem)

    def move(self, moves: Sequence[Move]) -> list[int]:
        """Carry out moves; a destination that does not exist is a new host. Return the slices."""
        new: dict[str, str] = {}
        for move in moves:
            name = move.destination
            if name not in self.hosts:
                if name not in new:
                    new[name] = f"h{next(self._numbers)}"
                    self.hosts.append(new[name])
                name = new[name]
            self.home[self._rows[move.slice]] = self.hosts.index(name)
        return [self._rows[move.slice] for move in moves]

    def release_empty(self) -> None:
        """End the hosts without slices."""
        kept = sorted(set(self.home.tolist()))
        self.hosts = [self.hosts[number] for number in kept]
        self.home = np.searchsorted(kept, self.home)


def spread_slices(table: SliceTable, hosts: int) -> IntArray:
    """Return a host for each slice, operator by operator, each with hosts by its number of slices.

    With as many hosts as four, an operator with half of all slices gets two of them.
    """
    stages = table.stages
    order = sorted(range(len(stages)), key=lambda stage: stages[stage].stop - stages[stage].start)
    line = [row for stage in order for row in range(stages[stage].start, stages[stage].stop)]
    home = np.zeros(len(line), np.intp)
    home[line] = np.arange(len(line)) * hosts // len(line)
    return home
