"""The log of repartitions of an operator with Spark's own state, and their expected cost."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.engines.spark.run_layout import RunLayout, read_json, write_json

#: Past repartitions that are kept for the expected cost.
MAX_COSTS = 50


class Cost(NamedTuple):
    """The cost of one repartition: rows of state, and seconds from hold to resume."""

    state_rows: int
    seconds: float


def estimate_s(past: Sequence[Cost], state_rows: int) -> float | None:
    """Return the expected seconds of a repartition with this much state; None without a past one.

    A least-squares line that never falls with the state and never goes below the fastest.

    >>> estimate_s([Cost(0, 2.0), Cost(1000, 4.0)], 2000)
    6.0
    >>> estimate_s([Cost(1000, 3.0)], 5)
    3.0
    """
    if not past:
        return None
    sizes, times = [cost.state_rows for cost in past], [cost.seconds for cost in past]
    size, time = sum(sizes) / len(past), sum(times) / len(past)
    spread = sum((rows - size) ** 2 for rows in sizes)
    together = sum(
        (rows - size) * (took_s - time) for rows, took_s in zip(sizes, times, strict=True)
    )
    slope = max(0.0, together / spread) if spread else 0.0
    return max(min(times), time + slope * (state_rows - size))


@dataclass(kw_only=True)
class RescaleLog:
    """Persistent log of an operator's repartitions.

    The change is logged before repartitioning and cleared afterwards; a restart completes it.
    """

    #: The number of partitions of a repartition in progress; None if there is none.
    target: int | None = None
    costs: list[Cost] = field(default_factory=list)

    @classmethod
    def load(cls, layout: RunLayout, operator: str) -> "RescaleLog":
        """Read the log; empty if there is no file."""
        hint = "if no change of its replicas was under way, remove the file"
        data = read_json(layout.native(operator), hint) or {}
        costs = [Cost(*cost) for cost in data.get("costs", ())]
        return cls(target=data.get("target"), costs=costs)

    def save(self, layout: RunLayout, operator: str) -> None:
        """Write the log."""
        kept = self.costs[-MAX_COSTS:]
        write_json(layout.native(operator), {"target": self.target, "costs": kept})
