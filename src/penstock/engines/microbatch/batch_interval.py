"""The minimum time between batches, by the CPU time that they take beside their rows. Pure.

A batch costs CPU time for planning, scheduling and committing, however few rows it has. Batches
follow each other at once while all of that stays below a share of the machine, and at longer
intervals above it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

#: A period with fewer batches says little about one batch.
_MIN_BATCHES = 5
#: Longer intervals delay changes of replicas, which take effect with the next batch.
MAX_INTERVAL_S = 5.0
#: An interval is replaced if it changes by more than this share.
_CHANGE = 0.2


class OverheadPeriod(NamedTuple):
    """CPU seconds of all processes that run no tasks, and the batches of one period."""

    cpu_s: float
    batches: int
    #: Operators that had batches.
    operators: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OverheadLimit:
    """The share of a machine that batches may take beside their rows."""

    share: float
    cores: int


def estimate_overhead_s(periods: Sequence[OverheadPeriod]) -> float | None:
    """Return the CPU seconds of a batch beside its rows; None if too few batches were seen.

    Rows of frame operators pass through the JVM, and its compiler works at the start. So the
    cheapest period counts.

    >>> estimate_overhead_s([OverheadPeriod(2.0, 10, 1), OverheadPeriod(0.6, 10, 1)])
    0.06
    """
    costs = [period.cpu_s / period.batches for period in periods if period.batches >= _MIN_BATCHES]
    return min(costs, default=None)


def compute_interval_s(overhead_s: float, operators: int, limit: OverheadLimit) -> float:
    """Return the interval at which the batches of all operators stay within the limit.

    >>> compute_interval_s(0.06, 3, OverheadLimit(share=0.2, cores=2))
    0.45
    """
    interval_s = overhead_s * max(1, operators) / (limit.share * limit.cores)
    return round(min(interval_s, MAX_INTERVAL_S), 3)


def choose_interval_s(
    before_s: float, periods: Sequence[OverheadPeriod], limit: OverheadLimit
) -> float:
    """Return the next interval: the present one, unless it is clearly wrong."""
    overhead_s = estimate_overhead_s(periods)
    operators = max((period.operators for period in periods), default=0)
    if overhead_s is None:
        return before_s
    wanted_s = compute_interval_s(overhead_s, operators, limit)
    is_near = abs(wanted_s - before_s) <= _CHANGE * max(wanted_s, before_s)
    return before_s if is_near else wanted_s
