"""Spark passes what every engine passes."""

import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tests.contracts.engine_checks import (
    AT_MOST,
    BEGINNING,
    OFFERED_RATE,
    REPLICA_RATE,
    RUNNING,
    Make,
    Paced,
)
from tests.spark_engines import Started

from penstock.pipelines.pipeline import Pipeline
from penstock.workloads.workload import Workload

pytestmark = pytest.mark.spark

#: Spark really waits; less than a tenth of the time is enough for batches of half a second.
PACE = 0.08


def two_operators() -> Pipeline:
    """Operators that wait, as calls to a service would: two cores carry many of them."""
    pipeline = Pipeline("two")
    for name in ("a", "b", "c"):
        pipeline.topic(name, "id long")

    @pipeline.produces("a", arrivals="deterministic")
    def rows(first_id: int, due: pa.Array) -> pa.Table:
        return pa.table({"id": range(first_id, first_id + len(due))})

    @pipeline.batches(reads="a", writes="b", replicas=2, max_replicas=AT_MOST)
    def first(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(batch.num_rows * SERVICE_S)
        return batch

    @pipeline.batches(reads="b", writes="c", replicas=2, max_replicas=AT_MOST)
    def second(batch: pa.RecordBatch) -> pa.RecordBatch:
        time.sleep(batch.num_rows * SERVICE_S)
        return batch

    return pipeline


#: A replica takes 40 records/s if a part of its time goes to the batch itself.
SERVICE_S = 0.65 / REPLICA_RATE


def made(started: Started) -> Paced:
    load = Workload.of_steps([OFFERED_RATE] * 10, step_s=60.0)
    return Paced(started.engine(two_operators(), load), PACE, work_rate=1 / SERVICE_S)


@pytest.fixture(scope="module")
def one(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Paced]:
    """An engine for all checks that do not need a new one."""
    started = Started(spark, tmp_path_factory.mktemp("contract"))
    yield made(started)
    started.stop()


@pytest.mark.parametrize("check", BEGINNING.values(), ids=BEGINNING)
def test_a_new_engine_passes_the_contract(started: Started, check: Callable[[Make], None]) -> None:
    check(lambda: made(started))


@pytest.mark.parametrize("check", RUNNING.values(), ids=RUNNING)
def test_an_engine_that_runs_passes_the_contract(one: Paced, check: Callable[[Make], None]) -> None:
    check(lambda: one)
