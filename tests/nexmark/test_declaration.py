"""Queries whose rows take their time."""

import pickle
import time
from dataclasses import replace

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from tests.tools.timing import time_call

from penstock.engines.simulator import library
from penstock.errors import InputError
from penstock.nexmark.queries import QUERIES
from penstock.nexmark.queries.declaration import WORK, SimulatedWork, declare, with_service_time
from penstock.pipelines.cpu_clock import processor_s
from penstock.runs.build_args import build_pipeline
from penstock.workloads.workload import Workload


@pytest.mark.parametrize("query", WORK)
def test_shares_of_work_are_those_of_the_simulated_pipeline(query: str) -> None:
    rates = {op.name: op.capacity_rate for op in library.load_pipeline(query).operators}
    own = next(name for name, share in WORK[query].items() if share == 1.0)
    for name, share in WORK[query].items():
        if name in rates:  # the reference's variant has one more
            assert share == pytest.approx(rates[own] / rates[name], rel=0.15)


@pytest.mark.parametrize("query", WORK)
def test_a_query_that_waits_is_the_same_query(query: str) -> None:
    plain, waiting = declare(query, None), declare(query, None, service_s=0.001)
    waiting.check()
    assert waiting.operators.keys() == plain.operators.keys()
    for name, operator in waiting.operators.items():
        assert operator.reads == plain.operators[name].reads
        if operator.slicing is not None:
            slices = replace(operator.slicing, slices=64)
            assert slices == plain.operators[name].slicing
        pickle.loads(cloudpickle.dumps(operator))


def test_rows_take_their_time_one_after_the_other() -> None:
    rows = pa.record_batch({"a": range(20)})
    began = time.perf_counter()
    assert SimulatedWork(lambda batch: batch, 0.005)(rows) is rows
    assert SimulatedWork(lambda _, state: state, 0.005)({"a": rows, "b": rows}, "state") == "state"
    assert time.perf_counter() - began >= 0.3


def test_what_a_row_takes_by_itself_is_part_of_its_time() -> None:
    rows = pa.record_batch({"a": range(20)})
    work = SimulatedWork(lambda _: time.sleep(0.5), 0.03)
    assert 0.6 <= time_call(lambda: work(rows), 1.1) < 1.1  # 1.1 s would be one after the other


def test_what_is_waited_for_counts_as_work_of_a_processor() -> None:
    before_s = processor_s()
    SimulatedWork(lambda batch: batch, 0.01)(pa.record_batch({"a": range(20)}))
    assert processor_s() - before_s >= 0.19


def test_queues_behind_the_sources_have_an_end_in_a_run() -> None:
    load = Workload.of_points([0, 10], [100, 100])
    limits = {n: op.options.queue_limit for n, op in declare("q1", load).operators.items()}
    assert limits == {"source": None, "mapper": 400, "sink": 400}


def test_without_waiting_nothing_is_changed() -> None:
    pipeline = QUERIES["q1"].build()
    before = dict(pipeline.operators)
    assert with_service_time(pipeline, 0.0).operators == before


def test_a_run_gets_events_that_follow_its_load() -> None:
    pipeline, numbers, following = build_pipeline("q1", {"service_s": "0.01"})
    assert numbers == {"variant": "thesis", "service_s": 0.01}
    assert following is not None
    load = Workload.of_points([0, 10], [100, 100])
    due = pa.array([0] * 500, pa.timestamp("us", "UTC"))
    at = [made.feeds["bids"].make(0, due)["dateTime"] for made in (pipeline, following(load))]
    usual_s, load_s = ((times[-1].as_py() - times[0].as_py()).total_seconds() for times in at)
    assert usual_s == pytest.approx(500 / 9200, rel=0.1)
    assert load_s == pytest.approx(5.0, rel=0.1)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_times_that_cannot_be_are_refused(seconds: float) -> None:
    with pytest.raises(InputError, match="service_s"):
        declare("q1", None, service_s=seconds)
