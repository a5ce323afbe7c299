"""What full batches cost besides the work of their tasks, as a factor of that work. Pure."""

from collections.abc import Sequence
from itertools import pairwise

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.full_batch import BEFORE_PLAN_S, count_full_rows

#: The smallest measured gap before a plan counts, up to this; longer gaps are idle time.
_MAX_BEFORE_PLAN_S = 0.3


def compute_mean_factor(records: Sequence[BatchRecord], batch_s: float) -> float:
    """Return the time of a full batch over the time that its mean task works.

    A replica that waits for the slowest one can do nothing else, so its wait is overhead.
    """
    lost = [r.committed_at - r.planned_at - compute_mean_busy_s(r) for r in records]
    busy_s = sum(task.busy_s for record in records for task in record.tasks)
    alone_s = busy_s / sum(record.rows_in for record in records)
    # the slowest task decides the length of a batch, and so the number of its rows
    return 1 + _add_gap(lost, records) / (_count_full_rows(records, batch_s) * alone_s)


def compute_slowest_factor(records: Sequence[BatchRecord], batch_s: float) -> float:
    """Return the time of a full batch over the time that its slowest replica works.

    The slowest one is that with the longest tasks in the mean. Where now one and now another is
    slow, every batch waits longer than for any of them, which is overhead. By the mean replica,
    slices would seem the heavier the more unevenly they are placed.
    """
    replicas = max(record.replicas for record in records)
    times = [[r.tasks[i].busy_s for r in records if i < r.replicas] for i in range(replicas)]
    slowest_s = max(sum(each) / len(each) for each in times)
    lost = [r.committed_at - r.planned_at - slowest_s for r in records]
    _, rows = _sum_slowest(records)
    filled = sum(1 for record in records if record.rows_in)
    full_s = _count_full_rows(records, batch_s) * slowest_s * filled / rows
    return 1 + _add_gap(lost, records) / max(full_s, 1e-9)


def compute_mean_busy_s(record: BatchRecord) -> float:
    """Return the mean seconds that a replica worked in a batch."""
    return sum(task.busy_s for task in record.tasks) / max(1, record.replicas)


def _add_gap(lost: Sequence[float], records: Sequence[BatchRecord]) -> float:
    """Return the mean of lost seconds, and the time from a commit to the next plan."""
    gaps = [b.planned_at - a.committed_at for a, b in pairwise(records)]
    between_s = min([*gaps, _MAX_BEFORE_PLAN_S]) if gaps else BEFORE_PLAN_S
    return max(0.0, sum(lost) / len(lost) + between_s)


def _count_full_rows(records: Sequence[BatchRecord], batch_s: float) -> int:
    """Return the rows of a replica in a full batch; slow rows may not fill it."""
    longest_s, rows = _sum_slowest(records)
    return count_full_rows(rows / longest_s, batch_s)


def _sum_slowest(records: Sequence[BatchRecord]) -> tuple[float, float]:
    """Return the seconds of the slowest tasks of batches with rows, and the rows of a task."""
    filled = [record for record in records if record.rows_in]
    longest_s = sum(max(task.busy_s for task in record.tasks) for record in filled)
    rows = sum(record.rows_in / min(record.rows_in, record.replicas) for record in filled)
    return max(longest_s, 1e-9), rows
