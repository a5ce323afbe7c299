"""From batch to batch: which version of its state a batch begins with, and which it leaves.

The version of a state is that of the source's offset: Spark's offset log fixes the rows of a batch,
so a batch that is run again begins with the same state and ends with the same, with any number of
replicas.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from penstock.core.frozen import FrozenDict
from penstock.core.placement import place
from penstock.engines.spark.duty import Duty
from penstock.engines.spark.plans import Share
from penstock.engines.spark.records import BatchLog, BatchRecord
from penstock.errors import PenstockError
from penstock.pipelines.stateful.watermark import watermark_after
from penstock.state.runs import Run
from penstock.state.version import Merged, Version, after, files
from penstock.topics.segment import SEGMENTS

#: Records that are looked at for the one before a batch: a batch may have its own already.
LOOK_BACK = 3
#: Weight of the last batch in the load of a slice.
_NEW = 0.3


def record_before(log: BatchLog, start: Mapping[str, int]) -> BatchRecord | None:
    """Return the record of the batch that ended where another begins; None for the very first."""
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


def shares(
    duty: Duty,
    before: BatchRecord | None,
    replicas: int,
    loads: Sequence[float],
    moves: Mapping[int, int] = FrozenDict(),
    idle: Collection[str] = (),
) -> tuple[Share, ...]:
    """Deal the slices to replicas by load; those that are well placed, or were moved, stay.

    Inputs that are idle do not hold the watermark.
    """
    assert duty.slices is not None
    version = (before.state if before else None) or Version(slices=duty.slices)
    were = homes_of(before) if before else {}
    homes = place(loads, replicas, {**were, **moves})
    watermark = next_watermark(duty, before, idle)
    batch = before.batch + 1 if before else 0
    dealt = [[s for s in range(duty.slices) if homes[s] == index] for index in range(replicas)]
    return tuple(
        Share(
            slices=tuple(slices),
            version=_of_slices(version, slices),
            watermark=watermark,
            batch=batch,
        )
        for slices in dealt
    )


def next_watermark(
    duty: Duty, before: BatchRecord | None, idle: Collection[str] = ()
) -> int | None:
    """Return the watermark of the batch that follows a record."""
    if before is None:
        return None
    version = before.state.watermark if before.state else None
    return watermark_after(version, before.latest, duty.delay_us, idle)


def _of_slices(version: Version, slices: Sequence[int]) -> Version:
    mine = {number: version.of(number) for number in slices if version.of(number)}
    return Version(slices=version.slices, runs=mine, watermark=version.watermark)


def homes_of(record: BatchRecord) -> dict[int, int]:
    """Return where slices were."""
    return {number: home for home, task in enumerate(record.tasks) for number in task.slices}


def loads_after(loads: Sequence[float], record: BatchRecord) -> list[float]:
    """Return what is known of the load of each slice, in seconds a batch, after one more."""
    known = list(loads)
    for task in record.tasks:
        for number, seconds in zip(task.slices, task.loads, strict=True):
            known[number] = known[number] * (1 - _NEW) + seconds * _NEW
    return known


def version_after(
    before: BatchRecord | None,
    slices: int,
    runs: Iterable[Run],
    merged: Iterable[Merged],
    watermark: int | None,
) -> Version:
    """Return the version that a batch leaves."""
    version = (before.state if before else None) or Version(slices=slices)
    return after(version, runs, merged, watermark)


def remove_old(directory: Path, log: BatchLog, record: BatchRecord) -> None:
    """Remove files that neither this batch nor the one before needs.

    The one before is needed when this batch is run again. Only what a record has named is
    touched: nobody knows whether something else is just being written.
    """
    old = log.get(record.batch - 2)
    if old is None or old.state is None or record.state is None:
        return
    previous = log.get(record.batch - 1)
    kept = files(record.state) | (files(previous.state) if previous and previous.state else set())
    for name in files(old.state) - kept:
        (directory / SEGMENTS / name).unlink(missing_ok=True)


def remove_leftovers(directory: Path, log: BatchLog) -> None:
    """Remove what no record names; only when nothing runs."""
    newest = log.last()
    if newest is None or newest.state is None or not (directory / SEGMENTS).is_dir():
        return
    previous = log.get(newest.batch - 1)
    kept = files(newest.state) | (files(previous.state) if previous and previous.state else set())
    for path in (directory / SEGMENTS).iterdir():
        if path.name not in kept:
            path.unlink(missing_ok=True)
