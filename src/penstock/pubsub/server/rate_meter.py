"""Rates over the last seconds."""

from collections import deque


class RateMeter:
    """Counts, and returns the rate over a window; the caller gives the time.

    >>> meter = RateMeter(window_s=10)
    >>> meter.add(50, now_s=0.0)
    >>> meter.add(50, now_s=4.0)
    >>> meter.total, meter.per_s(now_s=5.0), meter.per_s(now_s=12.0)
    (100, 10.0, 5.0)
    """

    def __init__(self, window_s: float = 10.0) -> None:
        self._window_s = window_s
        self._counts: deque[tuple[float, int]] = deque()
        self.total = 0

    def add(self, count: int, now_s: float) -> None:
        """Count something that happens now."""
        self.total += count
        second = float(int(now_s))
        if self._counts and self._counts[-1][0] == second:
            count += self._counts.pop()[1]
        self._counts.append((second, count))
        self._forget(now_s)

    def per_s(self, now_s: float) -> float:
        """Return the mean rate of the window."""
        self._forget(now_s)
        return sum(count for _, count in self._counts) / self._window_s

    def _forget(self, now_s: float) -> None:
        while self._counts and self._counts[0][0] <= now_s - self._window_s:
            self._counts.popleft()
