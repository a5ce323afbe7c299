"""Notices a batch that takes much longer than usual. Pure."""

from collections import deque
from dataclasses import dataclass, field
from statistics import median

#: A batch is slow if it takes so many times as long as usual, and so many seconds at least.
SLOW_FACTOR = 5.0
MIN_SLOW_S = 10.0
#: Batches that tell what is usual.
_REMEMBERED = 20


def is_slow(elapsed_s: float, usual_s: float) -> bool:
    """Whether a batch has taken much longer than usual so far.

    >>> is_slow(9.0, 0.5), is_slow(11.0, 0.5), is_slow(11.0, 4.0), is_slow(21.0, 4.0)
    (False, True, False, True)
    """
    return elapsed_s > max(MIN_SLOW_S, SLOW_FACTOR * usual_s)


@dataclass(slots=True)
class BatchTimer:
    """Times the batches of one operator, seen from outside."""

    #: What is usual before any batch was seen.
    usual_s: float
    _lasted: deque[float] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))
    _batch: int | None = None
    _since: float | None = None
    _warned: int | None = None

    @property
    def usual(self) -> float:
        """Seconds that a batch usually takes."""
        return median(self._lasted) if self._lasted else self.usual_s

    def look(self, now: float, batch: int, *, is_busy: bool) -> float | None:
        """Take one look; return the seconds of a batch that is slow, once for each batch."""
        if self._since is not None and (not is_busy or batch != self._batch):
            self._lasted.append(now - self._since)
            self._since = None
        if not is_busy:
            return None
        if self._since is None:
            self._since, self._batch = now, batch
        elapsed_s = now - self._since
        if self._warned == batch or not is_slow(elapsed_s, self.usual):
            return None
        self._warned = batch
        return elapsed_s
