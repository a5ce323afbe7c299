"""Where the time of a batch goes: by its record, and by Spark's own steps."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from penstock.engines.microbatch.batch_record import BatchRecord

#: Spark's steps in the order in which they happen, and what each does.
SPARK_STEPS = {
    "latestOffset": "the source chooses the end of the batch",
    "walCommit": "Spark logs the offsets",
    "getBatch": "Spark makes the frame of the batch",
    "queryPlanning": "Spark plans the query; the source deals rows to tasks",
    "addBatch": "tasks, and the commit of the sink",
    "commitOffsets": "Spark logs the commit; the source releases rows",
    "commitBatch": "Spark logs the commit",
}


def record_steps(records: Sequence[BatchRecord]) -> Iterator[tuple[str, float]]:
    """Yield the median seconds of the steps between two commits."""
    pairs = [(a, b) for a, b in pairwise(records) if a.tasks and b.tasks]
    yield (
        "last commit to plan: publication, Spark's commit log, next trigger, the source waits",
        statistics.median(b.planned_at - a.committed_at for a, b in pairs),
    )
    yield (
        "plan to the first task: Spark's offset log, planning, scheduling",
        statistics.median(min(t.began for t in b.tasks) - b.planned_at for _, b in pairs),
    )
    yield (
        "tasks: the function, segments on disk",
        statistics.median(
            max(t.ended for t in b.tasks) - min(t.began for t in b.tasks) for _, b in pairs
        ),
    )
    yield (
        "last task to the record of the batch: Spark collects messages, starts the commit",
        statistics.median(b.committed_at - max(t.ended for t in b.tasks) for _, b in pairs),
    )


def spark_steps(progress: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, float]]:
    """Yield the median seconds of Spark's steps in batches with rows."""
    batches = [p["durationMs"] for p in progress if p["numInputRows"]]
    for step, meaning in SPARK_STEPS.items():
        known = [ms[step] / 1000 for ms in batches if step in ms]
        if known:
            yield f"Spark, {step}: {meaning}", statistics.median(known)
