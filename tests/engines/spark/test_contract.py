"""Spark passes what every engine passes."""

import time
from collections.abc import Callable

import pyarrow as pa
import pytest
from tests.contracts.engine_checks import (
    AT_MOST,
    CHECKS,
    OFFERED_RATE,
    REPLICA_RATE,
    Make,
    Paced,
)
from tests.engines.spark.conftest import Started

from penstock.pipelines.pipeline import Pipeline
from penstock.workloads.workload import Workload

pytestmark = pytest.mark.spark

#: Spark really waits; a tenth of the time is enough for batches of half a second.
PACE = 0.1


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


@pytest.fixture
def make(started: Started) -> Make:
    def make_one() -> Paced:
        load = Workload.of_steps([OFFERED_RATE] * 10, step_s=60.0)
        return Paced(started.engine(two_operators(), load), PACE)

    return make_one


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
def test_spark_passes_the_contract(make: Make, check: Callable[[Make], None]) -> None:
    check(make)
