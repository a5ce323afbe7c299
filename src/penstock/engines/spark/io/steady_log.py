"""Records of batches on a clock that never jumps; tasks stamp them by the wall clock."""

from dataclasses import replace

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.topics.steady_clock import SteadyClock


class SteadyLog:
    """The records of one operator, with times of a steady clock."""

    def __init__(self, log: BatchLog, clock: SteadyClock) -> None:
        self._log, self._clock = log, clock

    @property
    def next(self) -> int:
        """The batch whose record comes next."""
        return self._log.next

    def read_new(self) -> list[BatchRecord]:
        """Return the records that came since the last call."""
        shift_s = self._clock.shift_s
        return [shift(record, shift_s) for record in self._log.read_new()]


def shift(record: BatchRecord, seconds: float) -> BatchRecord:
    """Return a record whose times are so many seconds later; those of its rows are as they are."""
    if not seconds:
        return record
    tasks = tuple(
        replace(task, began=task.began + seconds, ended=task.ended + seconds)
        for task in record.tasks
    )
    return replace(
        record,
        planned_at=record.planned_at + seconds,
        committed_at=record.committed_at + seconds,
        tasks=tasks,
    )
