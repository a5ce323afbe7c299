"""Groupings: pure functions that choose the replica for a record.

Wladdimiro et al., "A predictive approach for dynamic replication of operators in
distributed stream processing systems", SBAC-PAD 2022, section IV-A. Each
function takes the loads of the replicas, and returns the index of a replica and the new loads.
"""

from dataclasses import dataclass
from typing import Protocol
from zlib import crc32


@dataclass(frozen=True, slots=True)
class Loads:
    """Utilisation of each replica (1: a whole interval), and the counter for taking turns."""

    utilisation: tuple[float, ...]
    turn: int = 0

    @classmethod
    def idle(cls, replicas: int) -> "Loads":
        """Return the loads of idle replicas."""
        return cls((0.0,) * replicas)


class Grouping(Protocol):
    """Chooses a replica for one record.

    `key` is the record's key, `draw` a uniform number in [0, 1), `cost` the share of an
    interval for which one record occupies a replica (et / interval).
    """

    def __call__(
        self, loads: Loads, *, key: str, draw: float, cost: float
    ) -> tuple[int, Loads]: ...


def shuffle(loads: Loads, *, key: str, draw: float, cost: float) -> tuple[int, Loads]:  # noqa: ARG001
    """Choose a replica at random, all with the same probability.

    >>> shuffle(Loads.idle(4), key="", draw=0.5, cost=0.1)[0]
    2
    """
    return int(draw * len(loads.utilisation)), loads


def fields(loads: Loads, *, key: str, draw: float, cost: float) -> tuple[int, Loads]:  # noqa: ARG001
    """Choose a replica by the hash of the key.

    >>> {fields(Loads.idle(4), key="user-7", draw=d / 10, cost=0.1)[0] for d in range(10)}
    {1}
    """
    # not hash(), which differs between processes
    return crc32(key.encode()) % len(loads.utilisation), loads


def load_balancing(loads: Loads, *, key: str, draw: float, cost: float) -> tuple[int, Loads]:  # noqa: ARG001
    """Choose the least utilised replica (algorithm 1), or take turns once all are full.

    >>> chosen, after = load_balancing(Loads((0.5, 0.2, 0.9)), key="", draw=0, cost=0.1)
    >>> chosen, [round(u, 1) for u in after.utilisation]
    (1, [0.5, 0.3, 0.9])
    >>> load_balancing(Loads((1.0, 1.0), turn=3), key="", draw=0, cost=0.1)
    (1, Loads(utilisation=(1.0, 1.0), turn=4))
    """
    utilisation = loads.utilisation
    least = utilisation.index(min(utilisation))
    if utilisation[least] >= 1:
        return loads.turn % len(utilisation), Loads(utilisation, loads.turn + 1)
    raised_share = min(1.0, utilisation[least] + cost)
    return least, Loads((*utilisation[:least], raised_share, *utilisation[least + 1 :]), loads.turn)


GROUPINGS: dict[str, Grouping] = {
    "shuffle": shuffle,
    "fields": fields,
    "load-balancing": load_balancing,
}
