"""Versions of an operator's state on disk: finds that of a batch, removes old files."""

from collections.abc import Collection, Mapping
from pathlib import Path

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.errors import PenstockError
from penstock.state.state_files import holds_timers
from penstock.state.version import Version, file_names
from penstock.topics.embedded.segment import SEGMENTS

#: Records to search for the one before a batch, which may have a record itself.
LOOK_BACK = 3


def find_record_before(log: BatchLog, start: Mapping[str, int]) -> BatchRecord | None:
    """Return the record of the batch that ends at an offset; None for the first batch."""
    newest = log.last()
    if newest is None:
        return None
    for number in range(newest.batch, newest.batch - LOOK_BACK, -1):
        record = log.get(number)
        if record is not None and dict(record.end) == dict(start):
            return record
    if dict(newest.start) == dict(start) and log.get(newest.batch - 1) is None:
        return None  # the first batch, run again
    name = log.directory.name
    raise PenstockError(f"{name}: there is no state for a batch that begins at {dict(start)}")


def has_timers(directory: Path, version: Version) -> bool:
    """Whether a version has rows with timers: only they need a batch without other rows."""
    return any(holds_timers(directory / SEGMENTS / name) for name in file_names(version))


def remove_old(directory: Path, log: BatchLog, record: BatchRecord) -> None:
    """Remove files that neither this batch nor the one before needs.

    A repeated run of this batch needs the state before it. Files without a record stay, since
    a task may be writing them.
    """
    old = log.get(record.batch - 2)
    if old is None or old.state is None or record.state is None:
        return
    previous = log.get(record.batch - 1)
    kept = file_names(record.state) | (
        file_names(previous.state) if previous and previous.state else set()
    )
    for name in file_names(old.state) - kept:
        (directory / SEGMENTS / name).unlink(missing_ok=True)


def remove_unused_files(
    directory: Path, log: BatchLog, pending: Collection[str] = frozenset()
) -> None:
    """Remove files that no record names; only while nothing runs.

    `pending` are files of a batch that runs again, whose tasks need not run again.
    """
    newest = log.last()
    if newest is None or newest.state is None or not (directory / SEGMENTS).is_dir():
        return
    previous = log.get(newest.batch - 1)
    kept = file_names(newest.state) | (
        file_names(previous.state) if previous and previous.state else set()
    )
    for path in (directory / SEGMENTS).iterdir():
        if path.name not in kept and path.name not in pending:
            path.unlink(missing_ok=True)
