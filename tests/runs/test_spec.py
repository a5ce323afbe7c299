"""What can be asked of a run on Spark, and what is refused before anything starts."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from penstock.core.executors import ExecutorRules
from penstock.errors import InputError
from penstock.runs.journal_header import decider_of
from penstock.runs.replica_limits import MIN_RETURN_S, RETURN_S
from penstock.runs.run_directory import open_run
from penstock.runs.spark_preparation import (
    MIN_INTERVAL_S,
    prepare_spark_run,
)
from penstock.runs.spec import SparkSpec, read_spec

PIPELINE = """
from penstock import Pipeline

def build(share: float = 0.5, most: int = 4):
    pipeline = Pipeline("mine", objective_s=share)
    pipeline.topic("a", "id long"{external})
    pipeline.topic("b", "id long")
    {feed}

    @pipeline.batches(reads="a", writes="b", min_replicas=2, replicas=2, max_replicas=most)
    def copy(batch):
        return batch

    return pipeline

PIPELINE = build()
"""
FEED = 'pipeline.produces("a")(lambda first_id, due: {"id": range(first_id, first_id + len(due))})'


@pytest.fixture
def mine(tmp_path: Path) -> str:
    """A pipeline that makes its own rows."""
    path = tmp_path / "mine.py"
    path.write_text(PIPELINE.replace("{external}", "").replace("{feed}", FEED))
    return str(path)


@pytest.fixture
def fed(tmp_path: Path) -> str:
    """A pipeline that somebody else feeds."""
    path = tmp_path / "fed.py"
    path.write_text(PIPELINE.replace("{external}", ", external=True").replace("{feed}", ""))
    return str(path)


def test_two_minutes_of_the_workload_if_nobody_says(mine: str) -> None:
    assert prepare_spark_run(SparkSpec(pipeline=mine)).duration_s == 120
    assert prepare_spark_run(SparkSpec(pipeline=mine, speed_up=20)).duration_s == 120
    assert prepare_spark_run(SparkSpec(pipeline=mine, speed_up=100)).duration_s == 140 * 60 / 100


def test_speed_up_keeps_rates_and_objectives(mine: str) -> None:
    slow = prepare_spark_run(SparkSpec(pipeline=mine, minutes=40))
    fast = prepare_spark_run(SparkSpec(pipeline=mine, minutes=40, speed_up=4, rate_scale=2))
    assert slow.load is not None
    assert fast.load is not None
    assert fast.duration_s == slow.duration_s / 4
    assert fast.load.mean_rate == pytest.approx(2 * slow.load.mean_rate)
    assert fast.load.peak_rate == 2 * slow.load.peak_rate
    assert fast.objective_s == slow.objective_s == 0.5
    assert (slow.interval_s, fast.interval_s) == (15, 3.75)
    assert (slow.guards.cooldown_up_s, fast.guards.cooldown_up_s) == (15, 3.75)
    assert (slow.guards.cooldown_down_s, fast.guards.cooldown_down_s) == (60, 15)
    assert (slow.window_s, fast.window_s) == (60, 15)


def test_rules_for_hosts_look_at_what_happened_since_the_last_decision(fed: str) -> None:
    path = Path(fed)
    hosts = "hosts=Hosts(start=1, most=1), objective_s=share"
    text = path.read_text().replace("objective_s=share", hosts)
    text = text.replace(
        "import Pipeline", "import Pipeline\nfrom penstock.pipelines.host_declaration import Hosts"
    )
    sliced = 'pipeline.sliced("a", "b", key="id", state="n long", slices=2'
    path.write_text(
        text.replace('pipeline.batches(reads="a", writes="b"', sliced).replace(
            "batch):", "batch, state):"
        )
    )
    spec = SparkSpec(pipeline=fed, policy="enforcer")
    assert prepare_spark_run(spec).window_s == prepare_spark_run(spec).interval_s == 15
    assert prepare_spark_run(replace(spec, interval_s=2.0)).window_s == 5


def test_who_speaks_of_cool_downs_gets_what_he_asks_for(mine: str) -> None:
    asked = prepare_spark_run(
        SparkSpec(pipeline=mine, guards={"cooldown_s": "300", "budget": "9"})
    ).guards
    assert (asked.cooldown_s, asked.cooldown_up_s, asked.cooldown_down_s) == (300, None, None)
    assert (
        prepare_spark_run(SparkSpec(pipeline=mine, guards={"budget": "9"})).guards.cooldown_down_s
        == 60
    )


def test_executors_have_room_for_no_more_replicas_than_they_carry(mine: str) -> None:
    where = {"master": "local-cluster[4,2,1024]", "executors": "1:3"}
    prepared = prepare_spark_run(SparkSpec(pipeline=mine, **where))
    assert prepared.executors == ExecutorRules(low=1, high=3, cores=2, delay_s=RETURN_S)
    assert prepared.guards.budget == 6
    own = prepare_spark_run(SparkSpec(pipeline=mine, guards={"budget": "9"}, speed_up=20, **where))
    assert own.guards.budget == 9
    assert own.executors is not None
    assert own.executors.delay_s == MIN_RETURN_S
    assert prepare_spark_run(SparkSpec(pipeline=mine)).executors is None


def test_a_loop_is_not_sped_up_without_limit(mine: str) -> None:
    assert prepare_spark_run(SparkSpec(pipeline=mine, speed_up=1000)).interval_s == MIN_INTERVAL_S


def test_the_objective_is_what_queueing_keeps(mine: str) -> None:
    """A mean of half the objective, and no replica given up before a queue is that short."""
    assert prepare_spark_run(SparkSpec(pipeline=mine)).params.r_max == 0.25  # type: ignore[attr-defined]
    told = prepare_spark_run(SparkSpec(pipeline=mine, objective_s=3.0, speed_up=10))
    assert told.params.r_max == 1.5  # type: ignore[attr-defined]
    assert told.guards.hold_while_draining == 1.5
    own = prepare_spark_run(SparkSpec(pipeline=mine, params={"r_max": "2"}))
    assert (own.params.r_max, own.objective_s) == (2.0, 0.5)  # type: ignore[attr-defined]


def test_static_peak_knows_the_peak(mine: str) -> None:
    params: Any = prepare_spark_run(
        SparkSpec(pipeline=mine, policy="static-peak", rate_scale=3, minutes=20)
    ).params
    assert params.peak_rate == {"copy": 3 * 4}  # levels of 2 and 4


def test_the_peak_of_a_topic_is_its_share(mine: str) -> None:
    path = Path(mine)
    path.write_text(path.read_text().replace('produces("a")', 'produces("a", share=0.25)'))
    params: Any = prepare_spark_run(
        SparkSpec(pipeline=mine, policy="static-peak", minutes=20)
    ).params
    assert params.peak_rate == {"copy": 1.0}


def test_build_args_of_a_pipeline_are_arguments_of_its_function(mine: str) -> None:
    prepared = prepare_spark_run(
        SparkSpec(pipeline=mine, build_args={"share": "0.25", "most": "9"})
    )
    assert prepared.objective_s == 0.25
    assert prepared.pipeline.operators["copy"].options.max_replicas == 9
    assert prepared.build_args == {"share": 0.25, "most": 9}


def test_a_pipeline_without_producers_runs_until_it_is_stopped(fed: str) -> None:
    prepared = prepare_spark_run(SparkSpec(pipeline=fed))
    assert prepared.load is None
    assert math.isinf(prepared.duration_s)
    assert prepared.header()["duration_s"] is None
    assert prepare_spark_run(SparkSpec(pipeline=fed, minutes=10, speed_up=2)).duration_s == 300


def test_failures_outside_of_functions_are_retried_for_ever_in_production(
    fed: str, mine: str
) -> None:
    assert math.isinf(prepare_spark_run(SparkSpec(pipeline=fed)).retry_for_s)
    assert prepare_spark_run(SparkSpec(pipeline=fed, retry_minutes=2)).retry_for_s == 120
    assert prepare_spark_run(SparkSpec(pipeline=mine)).retry_for_s < 3600  # an experiment ends


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"policy": "ds3"}, "did you mean 'ds2'"),
        ({"policy": "enforcer"}, "decides about hosts"),
        ({"params": {"rmax": "1"}}, "did you mean 'r_max'"),
        ({"guards": {"cooldown": "1"}}, "did you mean 'cooldown"),
        ({"workload": "pulsr"}, "did you mean 'pulsar'"),
        ({"workload_params": {"rats": "1"}}, "did you mean 'rates'"),
        ({"build_args": {"shar": "1"}}, "did you mean 'share'"),
        ({"build_args": {"most": "1.5"}}, "must be a whole number"),
        ({"build_args": {"share": "much"}}, "must be a number"),
        ({"initial": {"cpy": 2}}, "did you mean 'copy'"),
        ({"initial": 9}, "from 2 to 4 replicas, got 9"),
        ({"initial": {"copy": 1}}, "from 2 to 4 replicas, got 1"),
        ({"speed_up": 0}, "--speed-up"),
        ({"rate_scale": -1}, "--rate-scale"),
        ({"minutes": 0}, "--minutes"),
        ({"objective_s": -1.0}, "--objective"),
        ({"batch_s": 0.0}, "--batch"),
        ({"overhead_share": 1.5}, "--overhead-share: must be above 0 and at most 1, got 1.5"),
        ({"interval_s": 15.0, "speed_up": 20}, "shorter than a batch"),
        ({"executors": "1:4"}, "no executors in local mode"),
        ({"master": "spark"}, "--master: cannot be read"),
        ({"master": "local-cluster[1,1,1024]"}, "room for 1 replicas"),
        # shows when the policy is asked about this pipeline only
        ({"policy": "static", "params": {"parallelism": "cpy:3"}}, "did you mean 'copy'"),
    ],
)
def test_mistakes_are_found_before_anything_starts(
    wrong: dict[str, Any], told: str, mine: str
) -> None:
    with pytest.raises(InputError) as error:
        prepare_spark_run(SparkSpec(pipeline=mine, **wrong))
    assert told in str(error.value)


def test_a_load_for_nobody(fed: str) -> None:
    with pytest.raises(InputError, match="has no topic to fill"):
        prepare_spark_run(SparkSpec(pipeline=fed, workload="pulsar"))


def test_a_spec_comes_back_from_its_file(mine: str, tmp_path: Path) -> None:
    spec = SparkSpec(
        pipeline=mine,
        speed_up=20.0,
        initial={"copy": 3},
        build_args={"most": "9"},
        dry_run=True,
        master="local-cluster[4,1,1024]",
        executors="1:3",
    )
    prepared = prepare_spark_run(spec)
    with open_run(tmp_path / "run", spec.to_json(), prepared.header()):
        assert read_spec(tmp_path / "run") == spec


def test_what_was_simulated_is_not_resumed(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text('version = 1\n[spec]\nquery = "q1"\n')
    with pytest.raises(InputError, match="query: unknown field of a run on Spark"):
        read_spec(tmp_path)
    with pytest.raises(InputError, match=r"there is no run\.toml"):
        read_spec(tmp_path / "nowhere")


def test_the_header_is_enough_to_ask_again(mine: str) -> None:
    prepared = prepare_spark_run(SparkSpec(pipeline=mine, speed_up=20, guards={"budget": "6"}))
    again = decider_of(prepared.header())
    assert again.params == prepared.params
    assert again.guards == prepared.guards
