"""Placement of slices on replicas: by load, not by number, and with few moves.

A batch lasts as long as its slowest replica, so the largest load counts. Slices stay where they
are while it is close to the mean: a slice that moves has to be mapped again.
"""

import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass

from penstock.core.frozen_dict import FrozenDict
from penstock.core.numbers import NOISE

#: How far the largest load may be above the mean before slices move.
TOLERANCE = 0.1


@dataclass(frozen=True, slots=True)
class Balance:
    """How a placement spreads the load."""

    #: Load of each replica, as loads of slices are given.
    replicas: tuple[float, ...]
    #: The slice with the largest load, and its part of a replica's fair share.
    heaviest: int
    heaviest_share: float

    @property
    def skew(self) -> float:
        """The largest load over the mean; 1 is even."""
        mean = sum(self.replicas) / len(self.replicas)
        return max(self.replicas) / mean if mean else 1.0

    @property
    def is_bound(self) -> bool:
        """Whether one slice alone is more than a replica's fair share: more replicas do not help.

        A slice is worked on by one replica, and so is each of its keys.
        """
        return self.heaviest_share > 1 + TOLERANCE and len(self.replicas) > 1


def place(
    loads: Sequence[float],
    replicas: int,
    before: Mapping[int, int] | None = None,
    tolerance: float = TOLERANCE,
    pins: Mapping[int, int] = FrozenDict(),
) -> tuple[int, ...]:
    """Return the replica of each slice, given the load of each and where they were.

    A slice in `pins` is on that replica, whatever its load; a pin to a replica that does not
    exist has no effect.

    >>> place([1, 1, 1, 1], 2)
    (0, 1, 0, 1)
    >>> place([1, 1, 1, 1], 2, {0: 0, 1: 0, 2: 1, 3: 1})
    (0, 0, 1, 1)
    >>> place([4, 1, 1, 1], 2, {0: 0, 1: 0, 2: 1, 3: 1})
    (0, 1, 1, 1)
    >>> place([4, 1, 1, 1], 2, {0: 0, 1: 0, 2: 1, 3: 1}, pins={1: 0})
    (0, 0, 1, 1)
    """
    known = {**(before or {}), **{s: r for s, r in pins.items() if r < replicas}}
    homes = {s: r for s, r in known.items() if r < replicas and s < len(loads)}
    totals = [0.0] * replicas
    for number, home in homes.items():
        totals[home] += loads[number]
    members = [0] * replicas
    for home in homes.values():
        members[home] += 1
    # slices without a replica go to the least loaded one; without loads, to the one with fewest
    for number in sorted(set(range(len(loads))) - set(homes), key=lambda s: (-loads[s], s)):
        home = min(range(replicas), key=lambda r: (totals[r], members[r], r))
        homes[number] = home
        totals[home] += loads[number]
        members[home] += 1
    pinned = {s for s, r in pins.items() if r < replicas}
    _even_out(loads, homes, totals, tolerance, pinned)
    return tuple(homes[number] for number in range(len(loads)))


def _even_out(
    loads: Sequence[float],
    homes: dict[int, int],
    totals: list[float],
    tolerance: float,
    pinned: Set[int],
) -> None:
    """Move slices from the busiest replica to the least busy one, except pinned ones.

    A replica that its pinned slices alone keep too busy is left out: the others share the rest.
    """
    left = list(range(len(totals)))
    for _ in range(len(loads) + len(totals)):
        mean = sum(totals[r] for r in left) / len(left)
        most = max(left, key=lambda r: (totals[r], -r))
        least = min(left, key=lambda r: (totals[r], r))
        gap = totals[most] - totals[least]
        if totals[most] <= (1 + tolerance) * mean:
            return
        # a gain by rounding alone would move slices back and forth
        gain = gap - NOISE * mean
        movable = [
            s
            for s, home in homes.items()
            if home == most and s not in pinned and 0 < loads[s] < gain
        ]
        if not movable:
            if len(left) == 1 or not any(homes[s] == most for s in pinned):
                return
            left.remove(most)
            continue
        # half the gap makes both equal
        number = min(movable, key=lambda s: (abs(loads[s] - gap / 2), s))
        homes[number] = least
        totals[most] -= loads[number]
        totals[least] += loads[number]


def useful_replicas(loads: Sequence[float]) -> int:
    """Return how many replicas can share the load: beyond that, the heaviest slice is the limit.

    >>> useful_replicas([1.0] * 64), useful_replicas([6, 1, 1, 1])
    (64, 2)
    """
    heaviest = max(loads, default=0.0)
    return max(1, math.ceil(round(sum(loads) / heaviest, 6))) if heaviest else len(loads) or 1


def balance(loads: Sequence[float], homes: Sequence[int], replicas: int) -> Balance:
    """Return how a placement spreads the load.

    >>> balance([5, 1, 1, 1], [0, 1, 1, 1], 2).heaviest_share
    1.25
    >>> balance([5, 1, 1, 1], [0, 1, 1, 1], 2).is_bound
    True
    """
    totals = [0.0] * replicas
    for number, home in enumerate(homes):
        totals[home] += loads[number]
    heaviest = max(range(len(loads)), key=lambda s: (loads[s], -s))
    mean = sum(totals) / replicas
    share = loads[heaviest] / mean if mean else 0.0
    return Balance(replicas=tuple(totals), heaviest=heaviest, heaviest_share=share)
