"""A pool of warm replicas: Python workers are started before the load needs them.

Spark forks a worker when a task finds none idle, so running many tasks at once creates the pool.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

#: How long to wait until all workers are running.
MAX_WAIT_S = 60.0
#: Poll interval of the workers that wait for the others; polling takes processor time.
POLL_S = 0.2
#: Time after which all tasks that fit on an executor have started.
OCCUPY_S = 1.0


def start_workers(spark: SparkSession, replicas: int, meeting: Path) -> None:
    """Start the workers of this many replicas; return when all are running.

    A task uses two workers, a reader and a writer, as the two chained functions here do.
    """
    rmtree(meeting, ignore_errors=True)  # left by a run that was killed meanwhile
    meeting.mkdir(parents=True)
    place = str(meeting)

    def wait_for_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                (Path(place) / str(number)).touch()
            deadline = time.monotonic() + MAX_WAIT_S
            # wait for all others: otherwise one worker could run two tasks
            while len(list(Path(place).iterdir())) < replicas and time.monotonic() < deadline:
                time.sleep(POLL_S)
            yield batch

    numbers = spark.range(0, replicas, 1, replicas).mapInArrow(_pass_on, "id long")
    numbers.mapInArrow(wait_for_all, "id long").collect()
    rmtree(meeting)


def warm_up(names: DataFrame) -> None:
    """Start the workers of one replica per row, one task each; rows without a name start none."""

    def occupy(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            # keep the worker busy, so that no other task gets it
            time.sleep(OCCUPY_S if any(batch.column(0).to_pylist()) else 0)
            yield batch

    names.mapInArrow(_pass_on, names.schema).mapInArrow(occupy, names.schema).collect()


def _pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches
