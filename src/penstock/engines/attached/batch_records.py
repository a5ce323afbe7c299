"""Turns the progress of a query into batch records. Pure.

An executor counts as a replica. All executors count as busy while a batch works (`addBatch`):
tasks share them, and what they do not share shows in `task_facts.TaskFacts`.
"""

from collections.abc import Mapping

from penstock.engines.attached.progress import QueryProgress
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord


def build_record(
    progress: QueryProgress,
    ranges: Mapping[str, tuple[int, int]],
    executors: int,
    *,
    waiting: int | None = None,
    cpu_s: float | None = None,
) -> BatchRecord | None:
    """Return the record of a batch on so many executors; None if the trigger ran no batch.

    `ranges` are the rows of each source that the batch read, `cpu_s` the seconds for which all
    cores of one executor were used.
    """
    work_s = progress.work_s
    if work_s is None:
        return None
    replicas = max(1, executors)
    rows = sum(end - start for start, end in ranges.values())
    return BatchRecord(
        batch=progress.batch,
        start={name: start for name, (start, _) in ranges.items()},
        end={name: end for name, (_, end) in ranges.items()},
        planned_at=progress.started_at,
        committed_at=progress.ended_at,
        tasks=tuple(
            TaskRecord(
                rows_in=share,
                rows_out=share,
                busy_s=work_s,
                cpu_s=cpu_s,
                began=progress.started_at,
                ended=progress.ended_at,
                late=progress.state.late_rows if progress.state and not number else 0,
            )
            for number, share in enumerate(_split(rows, replicas))
        ),
        waiting=waiting,
    )


def _split(rows: int, parts: int) -> list[int]:
    """Split rows into equal parts.

    >>> _split(7, 3)
    [3, 2, 2]
    """
    each, rest = divmod(rows, parts)
    return [each + (number < rest) for number in range(parts)]
