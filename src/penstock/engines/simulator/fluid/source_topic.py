"""The topic that a source reads: who came when, how old they are, and who is too old."""

from collections import deque
from collections.abc import Iterable

from penstock.engines.simulator.profile import Queues


class SourceTopic:
    """Records offered each step, read in order.

    Only counts are kept, one for each step of which records are still there: all that came
    in one step are of one age.
    """

    def __init__(self, offered: Iterable[int], step_s: float, queues: Queues) -> None:
        self._offered, self._step_s, self._queues = iter(offered), step_s, queues
        #: What is left of each step, oldest first; and the number of the oldest step.
        self._left: deque[int] = deque()
        self._head = 0

    def arrive(self) -> int:
        """Let the records of the next step come; return how many these are."""
        records = next(self._offered, 0)
        if records or self._left:
            self._left.append(records)
        else:
            self._head += 1
        return records

    def take(self, records: int, now_s: float) -> list[tuple[float, int]]:
        """Take records from the head; return them as (age in seconds, how many)."""
        taken = []
        while records > 0:
            left = self._left[0]
            part = min(left, records)
            if part:
                # offered in the middle of one step and taken in the middle of another, on average
                age = now_s - (self._head + 1) * self._step_s
                taken.append((max(0.0, age), part))
            records -= part
            if part == left:
                self._pop()
            else:
                self._left[0] = left - part
        return taken

    def expire(self, now_s: float) -> int:
        """Drop what is older than the retention; return how many records that were."""
        if self._queues.retention_s is None:
            return 0
        cut_s = now_s - self._queues.retention_s
        block_s = self._queues.retention_block_s
        if block_s:  # logs drop whole segments, once their last record is too old
            cut_s = cut_s // block_s * block_s
        last = int(cut_s / self._step_s + 1e-9)
        dropped = 0
        while self._left and self._head < last:
            dropped += self._pop()
        return dropped

    @property
    def waiting(self) -> int:
        """Records that are still there."""
        return sum(self._left)

    def _pop(self) -> int:
        self._head += 1
        return self._left.popleft()
