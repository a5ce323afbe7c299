"""Where a publication waits from when it was due to its notice, by operator and step."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.pubsub.arrays import Doubles, Integers

#: Steps at an operator, and what happens in each.
STEPS = {
    "wait": "in the topic, while the operator works on earlier batches",
    "start": "from the plan of a batch to its first task",
    "tasks": "from the first task's begin to the last one's end",
    "commit": "from there to the record of the batch",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DelayStep:
    """What publications wait at one step; means of steps add up to the mean delay."""

    #: Empty for the time before the first topic.
    operator: str
    step: str
    mean_s: float
    p95_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StageTimes:
    """Batches of one operator: up to which publication each goes, and when its steps ended."""

    operator: str
    #: One more than the last publication of each batch.
    ends: Integers
    #: Plan, begin of the first task, end of the last one, commit: (batches, 4).
    times: Doubles

    def find(self, publications: Integers) -> Doubles:
        """Return the times of the batch of each publication."""
        return np.asarray(self.times[np.searchsorted(self.ends, publications, "right")])


def read_stage(
    operator: str, records: Sequence[BatchRecord], topic: str, *, first: int = 0, rows: int = 1
) -> StageTimes:
    """Return the times of batches that had rows of a topic.

    A publication has so many `rows` in the topic, and the rows of publication 0 begin at `first`.
    """
    ran = [record for record in records if record.tasks and record.rows_in]
    return StageTimes(
        operator=operator,
        ends=np.array([(record.end[topic] - first) // rows for record in ran], np.int64),
        times=np.array(
            [
                (
                    record.planned_at,
                    min(task.began for task in record.tasks),
                    max(task.ended for task in record.tasks),
                    record.committed_at,
                )
                for record in ran
            ]
        ).reshape(-1, 4),
    )


def measure_steps(
    publications: Integers, due_at: Doubles, sent_at: Doubles, stages: Sequence[StageTimes]
) -> tuple[DelayStep, ...]:
    """Return the steps of publications, in order; each must be in a batch of every stage."""
    steps = [_summarise("", "publish", sent_at - due_at)]
    before_at = sent_at
    for stage in stages:
        times = stage.find(publications)
        parts = np.diff(np.column_stack([before_at, times]), axis=1)
        steps += [
            _summarise(stage.operator, step, part)
            for step, part in zip(STEPS, parts.T, strict=True)
        ]
        before_at = times[:, -1]
    return tuple(steps)


def _summarise(operator: str, step: str, seconds: Doubles) -> DelayStep:
    return DelayStep(
        operator=operator,
        step=step,
        mean_s=float(np.mean(seconds)),
        p95_s=float(np.percentile(seconds, 95)),
    )
