"""The operators that views mark as bottlenecks."""

from penstock.core.bottlenecks import find_bottlenecks
from penstock.core.snapshot import OperatorSnapshot, Snapshot

#: A source that falls behind by this share of what is offered is a bottleneck.
_LAG_SHARE, _BACKPRESSURE = 0.02, 0.1


def mark_bottlenecks(snapshot: Snapshot) -> frozenset[str]:
    """Return the operators that hold others back, or that get more than they can process."""
    offered = max(snapshot.offered.values(), default=0.0)
    bottlenecks = find_bottlenecks(
        snapshot, backpressure=_BACKPRESSURE, lag_rate=_LAG_SHARE * max(offered, 1e-9)
    )
    overloaded = {name for name, op in snapshot.operators.items() if _is_overloaded(snapshot, op)}
    return bottlenecks.confirmed | bottlenecks.suspected | overloaded


def _is_overloaded(snapshot: Snapshot, operator: OperatorSnapshot) -> bool:
    arrives, capacity = snapshot.arrival_rate(operator.name), operator.replica_capacity
    return bool(arrives and capacity and arrives > capacity * operator.parallelism)
