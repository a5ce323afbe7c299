"""How long a call takes on a machine that is shared."""

import time
from collections.abc import Callable


def quickest(
    call: Callable[[], object], for_s: float, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Call for so many seconds; the least disturbed one counts."""
    best = float("inf")
    began = time.perf_counter()
    while time.perf_counter() - began < for_s or best == float("inf"):
        start = clock()
        call()
        best = min(best, clock() - start)
    return best
