"""The context of a task inside the sink: its input and its numbers."""

import pickle
from collections.abc import Iterator

import pyarrow as pa
from pyspark import TaskContext

from penstock.engines.microbatch.batch_record import TaskRecord
from penstock.engines.microbatch.operator_votes import with_vote
from penstock.engines.spark.io.plans import TaskInput


def read_task(rows: Iterator[pa.RecordBatch]) -> TaskInput:
    """Return the task that the one row of a source with `passes_tasks` holds."""
    (row,) = (row for batch in rows for row in batch.column(0).to_pylist())
    task = pickle.loads(row)
    assert isinstance(task, TaskInput)
    return task


def read_batch_number() -> int:
    """Return the number of the batch that this task belongs to."""
    context = TaskContext.get()
    number = context.getLocalProperty("streaming.sql.batchId") if context else None
    assert number is not None
    return int(number)


def read_task_number() -> int:
    """Return the number of this task in its batch."""
    context = TaskContext.get()
    assert context is not None
    return context.partitionId()


def add_vote(record: TaskRecord, task: TaskInput) -> TaskRecord:
    """Return the record of a task; with the vote of its replica, if replicas decide alone."""
    return record if task.view is None else with_vote(record, task.view, read_batch_number())
