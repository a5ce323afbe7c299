"""A full batch: its rows, and the time before its plan."""

import math

#: Overhead of a batch before its plan: the last batch is logged, offsets are requested.
BEFORE_PLAN_S = 0.15


def count_full_rows(speed: float, batch_s: float) -> int:
    """Return the rows of one replica in a full batch, rounded up: a batch has fixed costs.

    >>> count_full_rows(speed=2.5, batch_s=1.0)
    3
    """
    return max(1, math.ceil(round(speed * batch_s, 6)))
