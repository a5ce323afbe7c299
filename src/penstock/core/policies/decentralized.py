"""Decentralized: every instance decides alone whether to duplicate itself or to stop.

Belkhiria, Tedeschi, "A Fully Decentralized Autoscaling Algorithm for Stream Processing
Applications", Auto-DaSP 2019, section 4. This file holds the decision of one instance;
the protocol that keeps the graph consistent is not part of it. The paper's algorithm 4
starts new nodes "if n > 1"; n >= 1 is meant.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from penstock.core.decision import Decision, Target, keep
from penstock.core.numbers import MAX_COUNT, ceil, floor
from penstock.core.params import NOTHING, Params, PerOperator, check_names, look_up, param
from penstock.core.policy import Applied, History, Policy, PolicyStyle, each_operator
from penstock.core.reasons import Reason
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.errors import InputError

RULE = (
    "load of one instance l = {load}, capacity {capacity}, {n} instances: "
    "p = floor({load} x {n} / ({r} x {capacity}) - {n}) / {n} = {p}; after all decided: {wanted}"
)


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


def decentralized(history: History, _applied: Applied, params: DecentralizedParams) -> Decision:
    """Return the number of instances after each of them has decided once.

    >>> op = OperatorSnapshot(name="map", parallelism=7, input_rate=4200, service_time_s=0.002)
    >>> now = Snapshot(at=0, operators={"map": op})
    >>> 7 < decentralized([now], [], DecentralizedParams()).targets["map"].wanted <= 14
    True
    """
    snapshot = history[-1]
    check_names(params.capacity, snapshot.operators, "capacity")
    return each_operator("decentralized", snapshot, lambda op: _target(op, snapshot, params))


def _target(op: OperatorSnapshot, snapshot: Snapshot, params: DecentralizedParams) -> Target:
    n, arrivals = op.parallelism, snapshot.arrival_rate(op.name)
    capacity = look_up(params.capacity, op.name)
    if capacity is None and op.service_time_s:
        capacity = 1 / op.service_time_s
    if op.input_rate is None or not capacity:
        return keep(n, Reason.METRICS_MISSING)
    # the input rate of an instance never exceeds its capacity; the arrivals show its true load
    load = max(op.input_rate, arrivals or 0.0) / n
    # a separate generator for each operator and time, so that the answer is reproducible
    draw = Random(f"{params.seed}/{snapshot.at!r}/{op.name}").random
    wanted = n + sum(
        decide_alone(load, n, capacity, params, is_keeper=instance == 0, draw=draw)
        for instance in range(n)
    )
    wanted = min(wanted, MAX_COUNT)
    p = probability(load, n, capacity, params.r)
    numbers = {"load": load, "capacity": capacity, "n": n, "r": params.r, "p": p, "wanted": wanted}
    if wanted == n:
        return keep(n, Reason.LOAD_IN_RANGE, RULE, **numbers)
    reason = Reason.INSTANCES_DUPLICATE if wanted > n else Reason.INSTANCES_STOP
    return Target(n, wanted, reason, RULE, numbers)


POLICY = Policy(
    name="decentralized",
    summary="every instance decides alone to duplicate or to stop",
    paper="A Fully Decentralized Autoscaling Algorithm, 2019",
    decide=decentralized,
    params=DecentralizedParams,
    measures=("input_rate", "service_time_s"),
    style=PolicyStyle("#44AA99", "dashed", "H"),
)
