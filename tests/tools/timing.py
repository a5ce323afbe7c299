"""Times that tests can judge on a busy machine."""

import time
from collections.abc import Callable

TRIES = 8


def time_call(call: Callable[[], object], good_s: float) -> float:
    """Return the shortest time of some calls; stops at the first one below good_s.

    Other work only ever makes a call longer, so the shortest time belongs to the code.
    """
    shortest_s = float("inf")
    for _ in range(TRIES):
        began_s = time.perf_counter()
        call()
        shortest_s = min(shortest_s, time.perf_counter() - began_s)
        if shortest_s < good_s:
            break
    return shortest_s
