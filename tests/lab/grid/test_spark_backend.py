"""Grids of runs on Spark: what is read, what is refused, what makes a result an old one."""

from pathlib import Path
from typing import Any

import pytest

from penstock.core.progress import WorkProgress
from penstock.errors import InputError, PenstockError
from penstock.lab.grid.grid import Grid, check_grid, parse_grid, read_grid
from penstock.lab.grid.runner import read_kept_results, run_all
from penstock.lab.grid.spark_backend import SparkBackend
from penstock.runs.spec import SparkSpec
from penstock.workloads.registry import make_workload

EXPERIMENTS = Path(__file__).parents[3] / "experiments" / "spark"
THESIS = ("cosine", "random(seed=1073)", "increase", "decrease", "convergence")


def grid(base: dict[str, Any] | None = None, **axes: Any) -> Grid:
    return parse_grid({"on": "spark", "base": {"query": "words", **(base or {})}, "grid": axes})


def test_a_cell_is_a_run_on_spark() -> None:
    found = grid(
        {"minutes": 30, "speed_up": 60, "rate_scale": 0.5, "build_args": {"service_s": 0.2}},
        policy=["ds2", {"policy": "hpa-cpu", "params": {"target": [0.5, 0.7]}}],
        workload="dns",
        seeds=[7],
    )
    assert [cell.name for cell in found.cells] == [
        "words-dns-ds2", "words-dns-hpa-cpu_target=0.5", "words-dns-hpa-cpu_target=0.7",
    ]  # fmt: skip
    assert found.cells[2].specs == (
        SparkSpec(
            pipeline="words", workload="dns", policy="hpa-cpu", params={"target": 0.7},
            minutes=30, speed_up=60, rate_scale=0.5, build_args={"service_s": 0.2}, seed=7,
        ),
    )  # fmt: skip


def test_a_pipeline_may_be_called_query_or_pipeline() -> None:
    told = [
        parse_grid({"on": "spark", "grid": {name: ["words", {name: "dns", "minutes": 2}]}})
        for name in ("query", "pipeline")
    ]
    assert told[0].cells == told[1].cells
    assert [cell.specs[0].to_json()["pipeline"] for cell in told[0].cells] == ["words", "dns"]


def test_build_args_may_have_their_earlier_name_and_kept_results_too(tmp_path: Path) -> None:
    now, earlier = (grid({name: {"service_s": 0.2}}) for name in ("build_args", "numbers"))
    assert now.cells == earlier.cells
    backend = SparkBackend(lambda spec, _: {"spec": spec.to_json(), "answer": spec.seed})
    run_all(now.runs, backend, tmp_path)
    (file,) = (tmp_path / "results").iterdir()
    file.write_text(file.read_text().replace("build_args", "numbers"))
    assert read_kept_results(now.runs, backend, tmp_path).missing == 0


def test_a_cell_is_named_after_the_load_that_it_gets_if_nobody_says() -> None:
    (cell,) = grid().cells
    assert (cell.name, cell.group, cell.label) == (
        "words-pulsar-queueing", "words, pulsar", "queueing",
    )  # fmt: skip


def test_other_service_times_and_speeds_are_other_loads() -> None:
    found = grid(build_args={"service_s": [0.1, 0.2]}, speed_up=[10, 20], policy=["ds2", "flink"])
    assert len({cell.group for cell in found.cells}) == 4
    assert {cell.label for cell in found.cells} == {"ds2", "flink"}


@pytest.mark.parametrize(
    ("data", "field", "problem", "hint"),
    [
        ({"on": "spork"}, "on", "must be simulator or spark, got 'spork'", "'spark'?"),
        ({"on": 3}, "on", "got 3", ""),
        ({"on": "spark"}, "query", "missing", "such as query"),
        ({"on": "spark", "note": 3}, "note", "must be a text", ""),
        ({"on": "spark", "base": {"engine": "flink"}}, "base.engine", "unknown field", ""),
        ({"on": "spark", "base": {"speedup": 3}}, "base.speedup", "unknown", "'speed_up'?"),
        ({"on": "spark", "base": {"speed_up": 0}}, "base.speed_up", "above 0, got 0", ""),
        ({"on": "spark", "base": {"seed": 0}}, "base.seed", "unknown", "belongs into [grid]"),
        ({"on": "spark", "base": {"query": "q1", "pipeline": "q2"}}, "base.pipeline",
         "another name of query", ""),
        ({"on": "spark", "base": {"query": "q1"}, "grid": {"policy": {"policy": "ds2",
         "rate_scale": 2}}}, "grid.policy", "must not set rate_scale", "the same load"),
        ({"base": {"speed_up": 3}}, "base.speed_up", "unknown field", ""),
    ],
)  # fmt: skip
def test_mistakes_are_named(data: dict[str, Any], field: str, problem: str, hint: str) -> None:
    with pytest.raises(InputError) as caught:
        parse_grid(data)
    assert caught.value.field == field
    assert problem in caught.value.problem and hint in caught.value.hint


@pytest.mark.parametrize(
    ("axes", "expected"),
    [
        ({"query": "wrods"}, "cell wrods-pulsar-queueing: pipeline: unknown pipeline 'wrods'"),
        ({"policy": ["ds2", "ds3"]}, "cell words-pulsar-ds3: policy: unknown policy 'ds3'"),
        ({"build_args": {"speed": 3}}, "--set speed: unknown argument"),
        ({"initial": 99}, "--initial: "),
    ],
)
def test_every_cell_is_made_ready_before_the_first_run(axes: Any, expected: str) -> None:
    data = {"on": "spark", "base": {"query": "words"}, "grid": axes}
    if "query" in axes:
        del data["base"]
    with pytest.raises(InputError) as caught:
        check_grid(parse_grid(data), "g.toml")
    assert expected in str(caught.value) and str(caught.value).startswith("g.toml, cell ")


def test_the_experiment_that_ships_can_run() -> None:
    found = read_grid(EXPERIMENTS / "thesis.toml")
    assert (found.name, found.backend.name) == ("spark-thesis", "spark")
    assert [(cell.group, cell.label) for cell in found.cells] == [
        (f"{query}, {load}", policy)
        for query in ("q1", "q11")
        for load in THESIS
        for policy in ("ds2", "dhalion", "hpa-cpu", "hpa-varga")
    ]
    check_grid(found)
    for cell in found.cells:
        (spec,) = cell.specs
        assert isinstance(spec, SparkSpec) and spec.minutes is not None
        assert spec.workload is not None
        assert 2 <= spec.minutes / spec.speed_up <= 3
        peak = make_workload(spec.workload, spec.minutes, spec.seed, {}).peak_rate * spec.rate_scale
        busiest = {"q1": 1.6, "q11": 1.0}[spec.pipeline] * spec.build_args["service_s"]
        assert 4.5 < peak * busiest < 7
    for word in ("times as fast", "1/10,000", "wait instead of computing"):
        assert word in found.note


def test_runs_with_and_without_a_controller_are_cells_of_one_grid() -> None:
    found = read_grid(EXPERIMENTS / "controllers.toml")
    check_grid(found)
    labels = ["no controller", "ds2", "psps", "decentralized in the loop"]
    assert [cell.label for cell in found.cells] == labels
    assert len({cell.group for cell in found.cells}) == 1
    specs = [spec for cell in found.cells for spec in cell.specs]
    assert [spec.controller for spec in specs] == ["none"] * 3 + [None] * 9
    assert {(spec.workload, spec.minutes, spec.speed_up) for spec in specs} == {
        ("cosine * 0.000012", 60, 36)
    }


def test_without_a_controller_the_policy_need_not_be_named() -> None:
    data = {"on": "spark", "base": {"query": "words"}, "grid": {"controller": ["none", "loop"]}}
    grid = parse_grid(data)
    check_grid(grid)
    assert [cell.specs[0].policy for cell in grid.cells] == ["decentralized", "queueing"]


def test_there_is_no_other_experiment_on_spark() -> None:
    assert {file.stem for file in EXPERIMENTS.glob("*.toml")} == {"controllers", "thesis"}


# --- running, with something else instead of Spark

PIPELINE = """
import pyarrow as pa
from penstock import Pipeline

pipeline = Pipeline("mine", objective_s=2)
pipeline.topic("rows", "id long")
pipeline.topic("out", "id long")

@pipeline.produces("rows")
def rows(first_id, due):
    return pa.table({"id": range(first_id, first_id + len(due))})

@pipeline.batches(reads="rows", writes="out")
def same(batch):
    return batch
"""


class Bench:
    """Remembers what was run, and where."""

    def __init__(self) -> None:
        self.ran: list[str] = []

    def __call__(self, spec: SparkSpec, place: Path) -> dict[str, Any]:
        self.ran.append(place.name)
        if "broken" in place.name:
            raise PenstockError("the JVM has gone")
        return {"spec": spec.to_json(), "place": str(place)}


def test_each_run_has_a_directory_and_is_not_run_again(tmp_path: Path) -> None:
    bench, found = Bench(), grid(policy=["ds2", "flink"], seeds=2)
    told: list[WorkProgress] = []
    results = run_all(found.runs, SparkBackend(bench), tmp_path, 1, told.append)
    assert bench.ran == [
        "words-pulsar-ds2-1066", "words-pulsar-flink-1066",
        "words-pulsar-ds2-1067", "words-pulsar-flink-1067",
    ]  # fmt: skip
    place = tmp_path / "runs" / "words-pulsar-ds2-1067"
    assert results["words-pulsar-ds2"][1]["place"] == str(place)
    assert [progress.done for progress in told] == [0, 1, 2, 3, 4]
    assert run_all(found.runs, SparkBackend(bench), tmp_path, 1) == results
    assert len(bench.ran) == 4
    kept = read_kept_results(found.runs, SparkBackend(), tmp_path)
    assert (kept.missing, kept.outdated) == (0, 0)


def test_one_that_fails_does_not_end_the_others_and_is_tried_again(tmp_path: Path) -> None:
    broken = {"policy": "ds2", "label": "broken"}
    bench, found = Bench(), grid(policy=["psps", broken, "flink"])
    failed: list[PenstockError] = []
    results = run_all(found.runs, SparkBackend(bench), tmp_path, 1, None, failed.append)
    assert [str(error) for error in failed] == ["run words-pulsar-broken-1066: the JVM has gone"]
    assert [len(runs) for runs in results.values()] == [1, 0, 1]
    run_all(found.runs, SparkBackend(bench), tmp_path, 1, None, failed.append)
    assert bench.ran[3:] == ["words-pulsar-broken-1066"]


def test_an_old_result_is_one_of_another_pipeline_or_policy_not_of_another_comment(
    tmp_path: Path,
) -> None:
    mine, policy = tmp_path / "mine.py", tmp_path / "policy.py"
    mine.write_text(PIPELINE)
    policy.write_text(_POLICY)
    data = {"on": "spark", "base": {"query": str(mine), "policy": str(policy), "minutes": 2}}
    bench = Bench()

    def times_run() -> int:
        run_all(parse_grid(data).runs, SparkBackend(bench), tmp_path, 1)
        return len(bench.ran)

    assert (times_run(), times_run()) == (1, 1)
    mine.write_text(PIPELINE.replace("    return batch", "    # as it was\n\n    return batch"))
    policy.write_text("# nothing new\n" + _POLICY)
    assert times_run() == 1, "comments"
    mine.write_text(PIPELINE.replace("return batch", "return batch.slice(1)"))
    assert times_run() == 2, "another function"
    mine.write_text(PIPELINE.replace('writes="out"', 'writes="out", max_replicas=3'))
    assert times_run() == 3, "the same function, declared otherwise"
    policy.write_text(_POLICY.replace("STATIC.decide(history", "STATIC.decide(history[-1:]"))
    assert times_run() == 4, "another policy"
    data["base"]["minutes"] = 3
    assert times_run() == 5, "another spec"


_POLICY = """
from dataclasses import replace
from penstock.core.policies.static import POLICY as STATIC

def decide(history, applied, params):
    return STATIC.decide(history, applied, params)

POLICY = replace(STATIC, name="mine", decide=decide)
"""


@pytest.mark.parametrize(
    ("load", "runs"), [("testrun", 6), ("cosine", 12), ("spikes", 6), ("trace", 6)]
)
def test_the_runs_that_the_twin_predicts_can_run(load: str, runs: int) -> None:
    found = read_grid(EXPERIMENTS.parent / "twin" / f"{load}.toml")
    check_grid(found)
    assert (found.name, found.backend.name, len(found.cells)) == (f"twin-{load}", "spark", runs)
    assert {spec.build_args["service_s"] for cell in found.cells for spec in cell.specs} == {0.015}
