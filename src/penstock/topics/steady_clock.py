"""A wall clock that never jumps, for waiting and pacing."""

import time
from collections.abc import Callable

#: Seconds by which the wall clock may differ before it is said to have been set.
TOLERANCE_S = 1.0


class SteadyClock:
    """Seconds since 1970 as they were at the start, moved on by the monotonic clock.

    Whoever sets the wall clock an hour back neither stops what waits nor ages what was measured.
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
        """Seconds to add to a time that the wall clock tells now; 0 unless it was set."""
        shift_s = self() - self._wall()
        return shift_s if abs(shift_s) > TOLERANCE_S else 0.0
