"""Measured pipelines, and the same at the rates of the library."""

from dataclasses import replace

import pytest

from penstock.engines.simulator.library import load_pipeline, load_profile
from penstock.engines.simulator.pipeline_choice import choose_pipeline, max_rate
from penstock.runs.simulated_run import simulate
from penstock.runs.spec import SimulationSpec
from penstock.workloads.registry import make_workload

SPARK = load_profile("spark")
THESIS = make_workload("cosine", 140, 1066, {})
SMALL = make_workload("cosine * 0.0001", 140, 1066, {})


@pytest.mark.parametrize("query", sorted(SPARK.pipelines))
def test_a_small_load_gets_the_pipeline_as_measured(query: str) -> None:
    assert choose_pipeline(SPARK, query, SMALL) is SPARK.pipelines[query]


@pytest.mark.parametrize("query", sorted(SPARK.pipelines))
def test_a_load_of_the_thesis_gets_the_capacities_of_the_library(query: str) -> None:
    chosen, library = choose_pipeline(SPARK, query, THESIS), load_pipeline(query)
    known = {op.name: op for op in library.operators}
    rules = SPARK.batches.but(**chosen.batches)
    for op in chosen.operators:
        assert op.capacity_rate == known[op.name].capacity_rate
        assert op.replicas == known[op.name].replicas
        assert op.max_replicas is None
        assert op.costs is not None
        assert op.costs.capacity_rate(rules) == pytest.approx(op.capacity_rate, rel=1e-3)
    assert chosen.batches == SPARK.pipelines[query].batches


def test_the_operators_keep_their_measured_overheads() -> None:
    measured = {op.name: op.costs for op in SPARK.pipelines["q1"].operators}
    for op in choose_pipeline(SPARK, "q1", THESIS).operators:
        before = measured[op.name]
        assert op.costs is not None
        assert before is not None
        assert op.costs.but(row_s=before.row_s) == before


def test_queues_hold_as_many_seconds_as_measured() -> None:
    for query in ("q1", "q11"):
        small, large = (choose_pipeline(SPARK, query, load) for load in (SMALL, THESIS))
        for before, after in zip(small.operators, large.operators, strict=True):
            if before.queue_limit is not None:
                assert after.queue_limit is not None
                work_s = after.queue_limit / after.capacity_rate
                assert work_s == pytest.approx(before.queue_limit / before.capacity_rate, rel=0.05)


def test_an_own_pipeline_is_always_as_measured() -> None:
    own = replace(SPARK.pipelines["q1"], name="mine")
    profile = replace(SPARK, pipelines={"mine": own})
    assert choose_pipeline(profile, "mine", THESIS) is own


def test_a_pipeline_that_was_not_measured_is_the_library_one() -> None:
    assert choose_pipeline(SPARK, "q5", THESIS) == load_pipeline("q5")


def test_the_bottleneck_limits_the_rate() -> None:
    source = SPARK.pipelines["q1"].operators[0]
    assert max_rate(SPARK.pipelines["q1"], SPARK) == pytest.approx(8 * source.capacity_rate)


def test_an_older_name_means_the_same_profile() -> None:
    assert load_profile("spark-batches") == SPARK


@pytest.mark.slow
@pytest.mark.parametrize("query", ["q1", "q5"])
def test_back_pressure_lets_dhalion_grow_inner_operators(query: str) -> None:
    spec = SimulationSpec(engine="spark", query=query, policy="dhalion", initial=1, minutes=20)
    shown = simulate(spec).to_json()
    inner = [name for name in shown["operators"] if name != "source"]
    assert any(shown["operators"][name]["replicas"]["max"] > 1 for name in inner)
