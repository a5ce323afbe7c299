"""Made-up records of batches."""

from collections.abc import Sequence

from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord


def task(
    rows: int = 10, busy_s: float = 0.5, cpu_s: float | None = 0.1, out: int | None = None
) -> TaskRecord:
    """One task that began at second 0."""
    return TaskRecord(
        rows_in=rows,
        rows_out=rows if out is None else out,
        busy_s=busy_s,
        cpu_s=cpu_s,
        began=0.0,
        ended=busy_s,
    )


def batch(
    number: int,
    *,
    at: float = 0.0,
    took_s: float = 1.0,
    tasks: Sequence[TaskRecord] = (),
    events: Sequence[tuple[float, int]] = (),
) -> BatchRecord:
    """One batch that was planned at a second."""
    return BatchRecord(
        batch=number,
        start={"a": 0},
        end={"a": sum(one.rows_in for one in tasks)},
        planned_at=at,
        committed_at=at + took_s,
        tasks=tuple(tasks),
        events=tuple(events),
    )
