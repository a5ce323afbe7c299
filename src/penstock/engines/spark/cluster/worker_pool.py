"""A pool of ready replicas: workers are started before the load needs them.

The predictive paper keeps inactive replicas ready; here they are Python workers that wait. A
worker is forked when a task finds none free, so as many tasks at once as the pool shall carry
make the pool.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from shutil import rmtree

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

#: Workers that cannot all be there after this long are not waited for.
PATIENCE_S = 60.0
#: Seconds between two looks who else is there; all look, while the others need the processor.
LOOK_S = 0.2
#: Seconds in which as many tasks as an executor has room for have all begun.
STAY_S = 1.0


def start_workers(spark: SparkSession, replicas: int, meeting: Path) -> None:
    """Start the workers of so many replicas; returns when all are there.

    A task holds two workers, one that reads and one that writes, as here one behind the other.
    """
    rmtree(meeting, ignore_errors=True)  # of a run that was killed while they met
    meeting.mkdir(parents=True)
    place = str(meeting)

    def wait_for_all(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                (Path(place) / str(number)).touch()
            deadline = time.monotonic() + PATIENCE_S
            # nobody leaves before all are there: else one worker could do for two
            while len(list(Path(place).iterdir())) < replicas and time.monotonic() < deadline:
                time.sleep(LOOK_S)
            yield batch

    numbers = spark.range(0, replicas, 1, replicas).mapInArrow(_pass_on, "id long")
    numbers.mapInArrow(wait_for_all, "id long").collect()
    rmtree(meeting)


def warm_up(names: DataFrame) -> None:
    """Start the workers of a replica for each row, one task a row; not for one without a name."""

    def stay(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            # for so long nobody else gets this worker
            time.sleep(STAY_S if any(batch.column(0).to_pylist()) else 0)
            yield batch

    names.mapInArrow(_pass_on, names.schema).mapInArrow(stay, names.schema).collect()


def _pass_on(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches
