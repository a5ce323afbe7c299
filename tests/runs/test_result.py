"""The result of a run: one type for both engines, and a format that old files keep to."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.errors import InputError
from penstock.runs.result import HindsightCost, RunResult
from penstock.runs.result_parts import CountStatistics, OperatorScore, RunScores
from penstock.runs.spark_result import (
    ExecutorChanges,
    OperatorAccount,
    RecordBalance,
    SparkMeasures,
    SparkResult,
    Spread,
    StaticPeak,
)

RECORDED = Path(__file__).parents[1] / "recorded"

SPARK = RunResult(
    spec={"pipeline": "images", "seed": 7},
    scores=RunScores(
        replicas=CountStatistics(avg=2.5, max=4),
        late_records={"minutes": 7},
        executors=CountStatistics(avg=1.0, max=2),
        executor_hours=0.0,
        operators={"map": OperatorScore(replicas=CountStatistics(avg=2.5, max=4), rescales=1)},
        unanswered_ticks=1,
    ),
    rescales_possible=9,
    spark=SparkResult(
        ended="finished",
        build_args={"service_s": 0.2},
        measures=SparkMeasures(
            seconds=60.0,
            static_peak=StaticPeak(peak_rate=8.0, replicas=4, operators={"map": 4}),
            floor_s=0.4,
            change_s=Spread(median=1.0, max=2.0),
            executor_changes=ExecutorChanges(bought=1, bought_s=Spread(median=3.0, max=3.0)),
        ),
        records=RecordBalance(
            offered=10, complete=10, missing=0, drained=True, topics={"stored": 10},
            operators={"map": OperatorAccount(rows_in=10, rows_out=10)},
        ),
        failed={"map": "it burns"},
    ),
    hindsight=HindsightCost(replica_hours=1.0, ratio=1.5, feasible=True),
)  # fmt: skip


def test_a_result_recorded_by_version_1_is_read_and_written_byte_by_byte() -> None:
    text = (RECORDED / "result-v1.json").read_text()
    result = RunResult.from_json(json.loads(text))
    assert result.scores is not None
    assert (result.scores.latency_s.p95, result.scores.operators["sink"].replicas.max) == (
        119.13,
        3,
    )
    assert (result.rescales_possible, result.spark) == (4, None)
    assert json.dumps(result.to_json(), indent=2) + "\n" == text


def test_a_result_on_spark_comes_back_from_json() -> None:
    assert RunResult.from_json(json.loads(json.dumps(SPARK.to_json()))) == SPARK


def test_a_result_with_the_earlier_name_of_build_args_is_read() -> None:
    data = SPARK.to_json()
    data["numbers"] = data.pop("build_args")
    data["spec"] = {**data["spec"], "numbers": {"service_s": 0.2}}
    result = RunResult.from_json(data)
    assert result.spark == SPARK.spark
    assert result.spec == {**SPARK.spec, "build_args": {"service_s": 0.2}}


def test_the_figures_of_a_run_on_spark_keep_their_names_and_order() -> None:
    data = SPARK.to_json()
    assert list(data) == [
        "spec", "build_args", "ended", "seconds", "replicas", "latency_s", "age_s", "rescales",
        "offered_records", "processed_records", "dropped_records", "backlog_records",
        "late_records", "throughput_degradation", "slo", "replica_hours", "executors",
        "executor_hours", "pause_s", "operators", "unanswered_ticks", "static_peak", "floor_s",
        "change_s", "change_batches", "executor_changes", "rescales_possible", "records", "failed",
        "hindsight",
    ]  # fmt: skip
    assert data["executor_hours"] == 0.0
    assert data["records"]["operators"]["map"]["rows_in"] == 10


@pytest.mark.parametrize(
    "data", [{"ended": "stopped"}, {"ended": "failed", "failed": {"map": "it burns"}}]
)
def test_a_run_that_ended_early_has_no_scores(data: dict[str, Any]) -> None:
    result = RunResult.from_json(data)
    assert result.scores is None
    assert result.spark is not None and result.spark.ended == data["ended"]


@pytest.mark.parametrize(
    "data",
    [
        *([], "text", {"replicas": 3}, {"ended": "finished", "records": 7}, {"spec": 3}),
        *({"replicas": {"avg": "9"}}, {"replicas": {}, "offered_records": []}),
        *({"ended": "cut", "records": {"lost": None}}, {"ended": "cut", "floor_s": {}}),
    ],
)
def test_a_damaged_result_is_an_error_of_the_file(data: Any) -> None:
    with pytest.raises(InputError, match="is not a result"):
        RunResult.from_json(data)
