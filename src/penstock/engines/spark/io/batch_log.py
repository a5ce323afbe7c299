"""The batch records of one operator on disk; the first record of a batch counts.

A batch that runs again after a crash may write other segments, but the existing record wins, and
its outputs are published. So all outputs of a batch appear, in all topics, as one attempt made
them. Two attempts at a batch read the same rows: a record of other rows is refused, never taken
for this batch. Batch records are also the monitoring channel.
"""

from dataclasses import replace
from pathlib import Path

from penstock.engines.microbatch.batch_record import (
    BatchRecord,
    have_same_input,
    read_record,
    read_source_offsets,
    write_record,
)
from penstock.errors import InputError, PenstockError
from penstock.files.atomic import link_new, sync_directory, write_temporary
from penstock.files.atomic import replace as replace_file
from penstock.topics.steady_clock import SteadyClock

#: Records older than this many batches are removed.
MAX_RECORDS = 200


class BatchLog:
    """The records of one operator, one file per batch."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        numbers = self.numbers()
        #: The batch that `read_new` reads next; at first, the oldest after the last gap.
        self.next = next((n for n in reversed(numbers) if n - 1 not in set(numbers)), 0)

    def numbers(self) -> list[int]:
        """Return the batches that have a record, in order."""
        return sorted(int(path.stem) for path in self.directory.glob("[0-9]*.json"))

    def put(self, record: BatchRecord) -> BatchRecord:
        """Write a record, unless its batch has one; return the one that counts.

        `PenstockError` if that one is about other rows.
        """
        path = self._path(record.batch)
        aside = write_temporary(path, write_record(record))
        try:
            is_first = link_new(aside, path)
        finally:
            aside.unlink()
        sync_directory(self.directory)  # the record is on disk before Spark's commit
        self._path(record.batch - MAX_RECORDS).unlink(missing_ok=True)
        kept = record if is_first else self.get(record.batch)
        assert kept is not None
        if not have_same_input(kept, record):
            raise PenstockError(_describe_mismatch(self.directory.name, kept, record))
        return kept

    def rewrite(self, record: BatchRecord) -> None:
        """Replace the record of a batch; only while nothing runs."""
        replace_file(self._path(record.batch), write_record(record))

    def get(self, batch: int) -> BatchRecord | None:
        """Return the record of a batch; None if there is none."""
        try:
            return read_record(self._path(batch).read_bytes())
        except FileNotFoundError:
            return None
        except ValueError as error:
            hint = (
                "restore the file from a backup; unless it is the newest of its operator it may"
                " also be removed: only figures about that batch are lost"
            )
            raise InputError(str(self._path(batch)), str(error), hint) from None

    def last(self) -> BatchRecord | None:
        """Return the newest record; None if there is none."""
        numbers = self.numbers()
        return self.get(numbers[-1]) if numbers else None

    def read_new(self) -> list[BatchRecord]:
        """Return the records that came since the last call."""
        records = []
        while (record := self.get(self.next)) is not None:
            records.append(record)
            self.next += 1
        return records

    def _path(self, batch: int) -> Path:
        return self.directory / f"{batch:020d}.json"


def _describe_mismatch(operator: str, kept: BatchRecord, attempt: BatchRecord) -> str:
    return (
        f"{operator}: batch {attempt.batch} is planned with {_format_range(attempt)}, but was"
        f" committed with {_format_range(kept)}: Spark's checkpoint does not fit the records of"
        " batches\n"
        "hint: stop the run and start it with --resume, which compares and repairs both"
    )


def _format_range(record: BatchRecord) -> str:
    parts = [f"{name} {record.start.get(name)} to {end}" for name, end in record.end.items()]
    return ", ".join(parts) or " ".join(read_source_offsets(record.offset_log)) or "no rows"


class SteadyLog:
    """The records of one operator, with times of a clock that never jumps."""

    def __init__(self, log: BatchLog, clock: SteadyClock) -> None:
        self._log, self._clock = log, clock

    @property
    def next(self) -> int:
        """The next batch without a record."""
        return self._log.next

    def read_new(self) -> list[BatchRecord]:
        """Return the records that came since the last call."""
        shift_s = self._clock.shift_s
        return [shift_times(record, shift_s) for record in self._log.read_new()]


def shift_times(record: BatchRecord, seconds: float) -> BatchRecord:
    """Return a record with its times shifted; event times of rows stay unchanged."""
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
