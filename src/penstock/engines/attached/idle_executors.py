"""Finds executors that run no task although batches are processed. Pure."""

from collections import deque
from collections.abc import Mapping

#: An executor is idle if it ran no task in this many batches.
BATCHES = 5


class IdleExecutors:
    """Compares how many tasks each executor has run, from batch to batch."""

    def __init__(self) -> None:
        self._counts: deque[Mapping[str, int]] = deque(maxlen=BATCHES + 1)

    def update(self, tasks: Mapping[str, int], *, has_batch: bool) -> None:
        """Note the tasks of each executor so far, if a batch has ended."""
        if has_batch and tasks:
            self._counts.append(dict(tasks))

    def find(self) -> tuple[str, ...]:
        """Return the executors without a task in the last batches; empty while unknown."""
        if len(self._counts) <= BATCHES:
            return ()
        first, last = self._counts[0], self._counts[-1]
        return tuple(name for name, tasks in last.items() if first.get(name) == tasks)
