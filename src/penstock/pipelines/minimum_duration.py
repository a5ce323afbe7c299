"""Emulates service times: a block of work lasts at least as long as it should."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def minimum_duration(
    seconds: float,
    wait: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.perf_counter,
) -> Iterator[None]:
    """Let a `with` block last this long: wait for the time that its work leaves.

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
