"""Bottlenecks: operators that hold back their upstream, by back-pressure or a growing queue."""

from dataclasses import dataclass

from penstock.core.snapshot import Snapshot


@dataclass(frozen=True, slots=True)
class Bottlenecks:
    """Operators that hold others back, and operators that may, but lack a measure."""

    confirmed: frozenset[str]
    suspected: frozenset[str]


def find_bottlenecks(snapshot: Snapshot, *, backpressure: float, lag_rate: float) -> Bottlenecks:
    """Return the operators that are not held back themselves but hold back their upstream.

    For an edge l -> r: l is back-pressured (its share exceeds `backpressure`) and r is not.
    For a source: it is not back-pressured, and its queue grows by more than `lag_rate`
    records/s. If l is back-pressured and the share of r is unknown, r is suspected.
    """
    confirmed, suspected = set(), set()
    for name, op in snapshot.operators.items():
        if op.is_source:
            slow = op.queue_growth is not None and op.queue_growth > lag_rate
        else:
            shares = (snapshot.operators[up].backpressured for up in op.upstream)
            slow = any(share is not None and share > backpressure for share in shares)
        if slow and op.backpressured is None:
            suspected.add(name)
        elif slow and op.backpressured is not None and op.backpressured <= backpressure:
            confirmed.add(name)
    return Bottlenecks(frozenset(confirmed), frozenset(suspected))
