"""The topic that a source reads in the fluid simulator: age and retention of records."""

from collections import deque
from collections.abc import Iterable

from penstock.engines.simulator.profile import Queues


class SourceTopic:
    """Counts of offered records by step, read in order.

    All records of one step have the same age, so one count per step is enough.
    """

    def __init__(self, offered: Iterable[int], step_s: float, queues: Queues) -> None:
        self._offered, self._step_s, self._queues = iter(offered), step_s, queues
        #: Unread records of each step, oldest first; and the number of the oldest step.
        self._remaining: deque[int] = deque()
        self._head = 0

    def arrive(self) -> int:
        """Add the records of the next step; return their number."""
        records = next(self._offered, 0)
        if records or self._remaining:
            self._remaining.append(records)
        else:
            self._head += 1
        return records

    def take(self, records: int, now_s: float) -> list[tuple[float, int]]:
        """Read records from the head; return pairs of age in seconds and number."""
        taken = []
        while records > 0:
            available = self._remaining[0]
            part = min(available, records)
            if part:
                # on average, records are offered and read in the middle of a step
                age = now_s - (self._head + 1) * self._step_s
                taken.append((max(0.0, age), part))
            records -= part
            if part == available:
                self._pop()
            else:
                self._remaining[0] = available - part
        return taken

    def expire(self, now_s: float) -> int:
        """Drop records older than the retention; return their number."""
        if self._queues.retention_s is None:
            return 0
        cut_s = now_s - self._queues.retention_s
        block_s = self._queues.retention_block_s
        if block_s:  # a log drops a whole segment once its last record is too old
            cut_s = cut_s // block_s * block_s
        last = int(cut_s / self._step_s + 1e-9)
        dropped = 0
        while self._remaining and self._head < last:
            dropped += self._pop()
        return dropped

    @property
    def waiting(self) -> int:
        """Number of unread records."""
        return sum(self._remaining)

    def _pop(self) -> int:
        self._head += 1
        return self._remaining.popleft()
