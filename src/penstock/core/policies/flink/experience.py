"""The effect of earlier changes: whether more replicas raised the capacity, and by how much.

An applied target keeps, among its numbers, the `capacity` of the operator before the change and
the capacity `expected` after it (records/s of all its replicas).
"""

from collections.abc import Sequence

from penstock.core.numbers import ceil
from penstock.core.policy import Applied
from penstock.core.snapshot import OperatorSnapshot


def was_ineffective(
    op: OperatorSnapshot, capacity: float, applied: Applied, *, least: float
) -> bool:
    """Return whether the last increase brought less than this share of the expected capacity."""
    last = applied[-1].targets.get(op.name) if applied else None
    if last is None or last.wanted <= last.current or last.wanted != op.parallelism:
        return False
    before, expected = last.numbers.get("capacity"), last.numbers.get("expected")
    if before is None or expected is None or expected <= before:
        return False
    return bool((capacity - before) / (expected - before) < least)


def speed_up(name: str, applied: Applied, lowest: float) -> float:
    """Return the share of linear speed-up of an operator, 1 with fewer than three changes."""
    past = [decision.targets[name] for decision in applied if name in decision.targets]
    samples = [(t.current, float(t.numbers["capacity"])) for t in past if t.numbers.get("capacity")]
    return scalability(samples, lowest) if len(samples) >= 3 else 1.0


def scalability(samples: Sequence[tuple[int, float]], lowest: float) -> float:
    """Return how much of linear speed-up was reached, from pairs of (parallelism, capacity).

    Least squares of capacity = alpha x beta x parallelism, where beta is the capacity of
    one replica at the smallest parallelism; between `lowest` and 1, rounded up to
    two decimals.

    >>> scalability([(4, 4000), (8, 7000), (16, 12000)], 0.5)
    0.79
    """
    smallest = min(p for p, _ in samples)
    beta = next(capacity for p, capacity in reversed(samples) if p == smallest) / smallest
    alpha = sum(p * r for p, r in samples) / (beta * sum(p * p for p, _ in samples))
    return ceil(min(1.0, max(lowest, alpha)) * 100) / 100
