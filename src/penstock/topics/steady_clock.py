"""A wall clock that never jumps, for waiting and pacing."""

import time
from collections.abc import Callable

#: A larger difference means that the wall clock was set.
TOLERANCE_S = 1.0


class SteadyClock:
    """Wall-clock time at the start, advanced by the monotonic clock.

    Setting the wall clock back neither stops timeouts nor changes the age of measurements.
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._wall, self._monotonic = wall, monotonic
        self._offset_s = wall() - monotonic()

    def __call__(self) -> float:
        """Return the time now."""
        return self._monotonic() + self._offset_s

    @property
    def shift_s(self) -> float:
        """Seconds to add to a current wall-clock time; 0 unless the wall clock was set."""
        shift_s = self() - self._wall()
        return shift_s if abs(shift_s) > TOLERANCE_S else 0.0
