"""What a batch of an operator with Spark's own state read: Spark's log of offsets tells."""

from collections.abc import Sequence
from dataclasses import replace

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.spark.io.plans import BatchPlan
from penstock.engines.spark.recovery.checkpoints import planned_batch
from penstock.engines.spark.run_layout import RunLayout
from penstock.topics.embedded.topic import Topic
from penstock.topics.schema import EVENT


def plan_of(layout: RunLayout, operator: str, batch: int) -> BatchPlan:
    """Return what a batch reads; its tasks are Spark's matter."""
    checkpoint = layout.checkpoint(operator)
    mine, before = planned_batch(checkpoint, batch), planned_batch(checkpoint, batch - 1)
    assert mine is not None  # it is planned before it runs
    begun = before.ends if before else {}
    start = {name: begun[name] if name in begun else _first(layout, name) for name in mine.ends}
    return BatchPlan(start=start, end=mine.ends, planned_at=mine.planned_at, tasks=())


def shared(tasks: Sequence[TaskRecord], plan: BatchPlan) -> tuple[TaskRecord, ...]:
    """Count the rows of a batch to its tasks, to each as many: who had which is not known."""
    rows = sum(plan.end[name] - start for name, start in plan.start.items())
    each, rest = divmod(rows, len(tasks)) if tasks else (0, 0)
    return tuple(replace(task, rows_in=each + (at < rest)) for at, task in enumerate(tasks))


def stamp_us(layout: RunLayout, operator: str, batch: int) -> int:
    """When the last rows of a batch were due: what it lets out is due with them."""
    plan = plan_of(layout, operator, batch)
    found = [
        rows[EVENT].cast("int64")[0].as_py()
        for name, end in plan.end.items()
        if end > plan.start[name]
        for rows in Topic.open(layout.topic(name)).read(end - 1, end, [EVENT])
    ]
    return max(found, default=int(plan.planned_at * 1e6))


def _first(layout: RunLayout, topic: str) -> int:
    return Topic.open(layout.topic(topic)).first
