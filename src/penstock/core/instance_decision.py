"""The decision of one instance that decides alone: duplicate itself, stop, or stay.

Belkhiria, Tedeschi, "A Fully Decentralized Autoscaling Algorithm for Stream Processing
Applications", Auto-DaSP 2019, section 4.1. The policy `decentralized` asks it for every instance.
The simulator and the processes without a controller, and the tasks of a run on Spark without one,
ask it for themselves.
"""

from collections.abc import Callable
from dataclasses import dataclass

from penstock.core.numbers import ceil, floor
from penstock.core.params import NOTHING, Params, PerOperator, param
from penstock.errors import InputError


@dataclass(frozen=True, slots=True, kw_only=True)
class DecentralizedParams(Params):
    """Parameters of the decentralized policy."""

    r: float = param(0.7, "share of its capacity that an instance should use", low=0, above=True)
    up: float = param(0.8, "duplicate at or above this share", low=0, above=True)
    down: float = param(0.6, "may stop at or below this share", low=0)
    capacity: PerOperator = param(
        NOTHING,
        "records/s of one instance; 1 / service time if not given",
        unit="records/s",
        low=0,
        above=True,
    )
    seed: int = param(0, "seed of the instances' draws")

    def check(self) -> None:
        """The lower threshold must be below the upper one."""
        if self.down >= self.up:
            raise InputError("down", f"must be below up ({self.up:g}), got {self.down:g}")


def probability(load: float, siblings: int, capacity: float, r: float) -> float:
    """Return p = diff / n with diff = floor(L / (r C) - n) and L = l n.

    >>> round(probability(600, 7, 500, 0.7) * 7)
    5
    """
    return floor(load * siblings / (r * capacity) - siblings) / siblings


def ideal(total_load: float, capacity: float, r: float) -> int:
    """Instances that would carry the whole load at share r each, at least one."""
    return max(1, ceil(total_load / (r * capacity)))


def decide_alone(
    load: float,
    siblings: int,
    capacity: float,
    params: DecentralizedParams,
    *,
    is_keeper: bool,
    draw: Callable[[], float],
) -> int:
    """Return by how many one instance changes the operator: copies it starts, or -1 to stop."""
    p = probability(load, siblings, capacity, params.r)
    if load >= params.up * capacity:
        copies = max(0.0, p)
        return int(copies) + (draw() < copies - int(copies))
    if load <= params.down * capacity and not is_keeper:
        return -int(draw() < -p)
    return 0
