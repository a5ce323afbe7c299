"""The processor time of this process; emulated work adds the time that it stands for."""

import time
from collections.abc import Callable

_emulated: list[Callable[[], float]] = []


def add_clock(emulated_s: Callable[[], float]) -> None:
    """Count seconds that this process has waited in place of computing."""
    _emulated.append(emulated_s)


def processor_s() -> float:
    """Seconds that this process has computed since it began, or waited as if it had."""
    return time.process_time() + sum(clock() for clock in _emulated)
