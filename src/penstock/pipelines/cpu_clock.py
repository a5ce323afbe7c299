"""Processor time of this process, and work that is emulated by waiting.

Emulated work leaves the core free and counts as computation, so that policies that look at
processors see it. A plain wait, as for a server, does not count.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_emulated_s = 0.0


def processor_s() -> float:
    """Return the seconds that this process has computed, or emulated, since it began."""
    return time.process_time() + _emulated_s


def emulate_work(seconds: float, waited_s: float = 0.0) -> None:
    """Wait, and count the time as computation; what was waited before need not be waited again."""
    global _emulated_s
    time.sleep(max(0.0, seconds - waited_s))
    _emulated_s += seconds


@contextmanager
def minimum_duration(
    seconds: float,
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[None]:
    """Let a `with` block last at least this long: wait for the rest of the time.

    A block that raises does not wait.

    >>> with minimum_duration(10.0, wait=print, clock=iter([0.0, 4.0]).__next__):
    ...     pass
    6.0
    """
    started = clock()
    yield
    remaining_s = seconds - (clock() - started)
    if remaining_s > 0:
        wait(remaining_s)
