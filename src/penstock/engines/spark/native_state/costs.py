"""What a repartition costs, learnt from those before. Pure."""

from collections.abc import Sequence
from typing import NamedTuple


class Cost(NamedTuple):
    """One repartition: rows of state, and seconds from the hold to the resume."""

    state_rows: int
    seconds: float


def expected_s(past: Sequence[Cost], state_rows: int) -> float | None:
    """Seconds that another one would take with so much state; None before the first.

    A line through what was seen, which neither falls with the state nor goes below the
    quickest.

    >>> expected_s([Cost(0, 2.0), Cost(1000, 4.0)], 2000)
    6.0
    >>> expected_s([Cost(1000, 3.0)], 5)
    3.0
    """
    if not past:
        return None
    sizes, times = [cost.state_rows for cost in past], [cost.seconds for cost in past]
    size, time = sum(sizes) / len(past), sum(times) / len(past)
    spread = sum((one - size) ** 2 for one in sizes)
    together = sum((one - size) * (other - time) for one, other in zip(sizes, times, strict=True))
    slope = max(0.0, together / spread) if spread else 0.0
    return max(min(times), time + slope * (state_rows - size))
