"""The topic that a source reads: who came when, how old they are, and who is too old."""

from collections.abc import Sequence

from penstock.engines.simulator.profile import Queues


class Topic:
    """Records offered each step, read in order.

    Only counts are kept: the record number n was offered in the step in which the running
    count passed n, so its age needs no memory of its own.
    """

    def __init__(self, offered: Sequence[int], step_s: float, queues: Queues) -> None:
        self._offered, self._step_s, self._queues = offered, step_s, queues
        #: The step whose records stand at the head, and how many of them are gone.
        self._head, self._gone = 0, 0

    def offered_in(self, step: int) -> int:
        """Records that come in one step."""
        return self._offered[step] if step < len(self._offered) else 0

    def take(self, records: int, now_s: float) -> list[tuple[float, int]]:
        """Take records from the head; return them as (age in seconds, how many)."""
        taken = []
        while records > 0:
            left = self._offered[self._head] - self._gone
            part = min(left, records)
            if part:
                # offered in the middle of one step and taken in the middle of another, on average
                age = now_s - (self._head + 1) * self._step_s
                taken.append((max(0.0, age), part))
            records -= part
            if part == left:
                self._head, self._gone = self._head + 1, 0
            else:
                self._gone += part
        return taken

    def expire(self, now_s: float) -> int:
        """Drop what is older than the retention; return how many records that were."""
        if self._queues.retention_s is None:
            return 0
        cut_s = now_s - self._queues.retention_s
        block_s = self._queues.retention_block_s
        if block_s:  # logs drop whole segments, once their last record is too old
            cut_s = cut_s // block_s * block_s
        last = min(int(cut_s / self._step_s + 1e-9), len(self._offered))
        dropped = 0
        while self._head < last:
            dropped += self._offered[self._head] - self._gone
            self._head, self._gone = self._head + 1, 0
        return dropped
