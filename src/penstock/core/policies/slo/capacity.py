"""The capacity of one replica, learnt from recent snapshots, cautious by its spread."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.core.numbers import ratio
from penstock.core.snapshot import OperatorSnapshot, Snapshot

#: Snapshots that are looked at; below this busy share only if there are no others.
RECENT, MIN_BUSY = 12, 0.05
#: A total that grows by less than this share of what more replicas should bring is exhausted.
MIN_GAIN = 0.25
#: Replicas count as saturated above this.
SATURATED = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """Records/s of one replica, and the largest number of replicas known to help."""

    per_replica: float
    useful: int | None = None


def measure_capacity(name: str, history: Sequence[Snapshot]) -> Capacity | None:
    """Return the capacity of an operator; None while nothing was measured."""
    known = [op for op in _recent(name, history) if _replica_rate(op) is not None]
    busy = [op for op in known if op.busy is None or op.busy >= MIN_BUSY]
    seen = busy or known
    rates = [rate for op in seen if (rate := _replica_rate(op)) is not None]
    if not rates:
        return None
    # by work done: nearly idle replicas measure their overhead
    weights = [(op.busy or 1.0) * op.parallelism for op in seen]
    total = math.fsum(weights)
    mean = math.fsum(r * w for r, w in zip(rates, weights, strict=True)) / total
    spread = math.sqrt(math.fsum((rate - mean) ** 2 for rate in rates) / len(rates))
    # one standard error below the mean: a few noisy measures promise less
    cautious = max(mean - spread / math.sqrt(len(rates)), min(rates))
    return Capacity(per_replica=cautious, useful=find_useful(_recent(name, history)))


def find_useful(operators: Sequence[OperatorSnapshot]) -> int | None:
    """Return the replicas beyond which saturated ones did not take more; None if more helped."""
    totals: dict[int, list[float]] = {}
    for op in operators:
        if op.input_rate and op.busy is not None and op.busy >= SATURATED and op.queue:
            totals.setdefault(op.parallelism, []).append(op.input_rate)
    # one snapshot may fall into the change itself
    known = sorted((k, max(rates)) for k, rates in totals.items() if len(rates) > 1)
    if len(known) < 2:
        return None
    (fewer, before), (more, after) = known[-2:]
    promised = before * (more / fewer - 1)
    return fewer if after - before < MIN_GAIN * promised else None


def measure_edges(history: Sequence[Snapshot]) -> Mapping[tuple[str, str], float]:
    """Return, for each edge, the records sent per record processed, over recent snapshots."""
    now, recent = history[-1], history[-RECENT:]
    edges = {}
    for name, op in now.operators.items():
        for feeder in op.upstream:
            pairs = [
                (sent, processed)
                for snapshot in recent
                if name in snapshot.operators
                and (upstream := snapshot.operators.get(feeder)) is not None
                and (processed := upstream.input_rate)
                and (sent := snapshot.sent_rate(feeder, name)) is not None
            ]
            passed = ratio(math.fsum(s for s, _ in pairs), math.fsum(p for _, p in pairs))
            edges[feeder, name] = 1.0 if passed is None else passed
    return edges


def _recent(name: str, history: Sequence[Snapshot]) -> list[OperatorSnapshot]:
    return [s.operators[name] for s in history[-RECENT:] if name in s.operators]


def _replica_rate(op: OperatorSnapshot) -> float | None:
    return op.true_rate or op.replica_capacity
