"""Where publications wait, from batches that are known."""

import numpy as np
import pytest

from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.pubsub.bench.delay_steps import STEPS, measure_steps, read_stage


def record(
    topic: str, start: int, end: int, planned_at: float, *tasks: tuple[float, float], wait_s: float
) -> BatchRecord:
    """A batch whose tasks began and ended at these times."""
    ran = tuple(
        TaskRecord(rows_in=end - start, rows_out=0, busy_s=1.0, cpu_s=None, began=a, ended=b)
        for a, b in tasks
    )
    last = max((b for _, b in tasks), default=planned_at)
    return BatchRecord(
        batch=0,
        start={topic: start},
        end={topic: end},
        planned_at=planned_at,
        committed_at=last + wait_s,
        tasks=ran,
    )


def test_the_steps_of_a_publication_add_up_to_its_delay() -> None:
    access = [
        record("requests", 100, 102, 1.0, (1.1, 1.3), wait_s=0.1),
        record("requests", 102, 102, 1.5, (1.5, 1.5), wait_s=0.0),  # without rows
        record("requests", 102, 104, 2.0, (2.2, 2.4), (2.1, 2.3), wait_s=0.2),
    ]
    exits = [record("partial", 0, 8, 3.0, (3.5, 4.5), wait_s=0.5)]
    stages = (
        read_stage("access", access, "requests", first=100),
        read_stage("exit", exits, "partial", rows=2),
    )
    numbers, due, sent = np.array([1, 2]), np.array([0.0, 1.0]), np.array([0.5, 1.25])
    steps = measure_steps(numbers, due, sent, stages)
    found = [(step.operator, step.step) for step in steps]
    assert found == [("", "publish"), *((name, s) for name in ("access", "exit") for s in STEPS)]
    # publication 1 is in the first batch of access points, 2 in the last one
    means = [step.mean_s for step in steps]
    assert means[:5] == pytest.approx([0.375, 0.625, 0.1, 0.25, 0.15])
    # all are in one batch of exit points, planned at 3.0
    assert means[5:] == pytest.approx([(1.6 + 0.4) / 2, 0.5, 1.0, 0.5])
    assert sum(means) == pytest.approx(((5.0 - 0.0) + (5.0 - 1.0)) / 2)
    assert steps[1].p95_s == pytest.approx(0.5 + 0.95 * 0.25)
