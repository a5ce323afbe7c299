"""The clock of a run in real time, and the times at which its ticks are due."""

import math
import time
from collections.abc import Callable

from penstock.core.numbers import NOISE

#: Returns the seconds since a run began.
Clock = Callable[[], float]


def run_clock(start_s: float = 0.0, monotonic: Callable[[], float] = time.monotonic) -> Clock:
    """Return a clock that starts at `start_s`: 0, or the time at which a resumed run ended."""
    began_s = monotonic() - start_s
    return lambda: monotonic() - began_s


def next_due(at: float, interval_s: float) -> float:
    """Return the next multiple of the interval: a missed tick is skipped.

    >>> [next_due(at, 15.0) for at in (0.0, 14.9, 15.0, 52.3)]
    [15.0, 15.0, 30.0, 60.0]
    """
    return (_number(at, interval_s) + 1) * interval_s


def missed_between(before: float, at: float, interval_s: float) -> int:
    """Return how many ticks were due between two others.

    >>> [missed_between(15.0, at, 15.0) for at in (15.2, 30.2, 52.3)]
    [0, 0, 1]
    """
    return max(0, _number(at, interval_s) - _number(before, interval_s) - 1)


def _number(at: float, interval_s: float) -> int:
    return math.floor(at / interval_s + NOISE)
