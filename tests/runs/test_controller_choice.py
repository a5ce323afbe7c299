"""Runs without a controller: what is refused, and the rules of their replicas."""

from pathlib import Path
from typing import Any

import pytest
from tests.builders import op, snap

import penstock
from penstock.cli.main import main
from penstock.core.reasons import Reason
from penstock.core.vote_count import VoteCount
from penstock.errors import InputError
from penstock.runs.journal_header import decider_of
from penstock.runs.spark_preparation import PreparedSparkRun, prepare_spark_run
from penstock.runs.spec import SparkSpec, default_policy

PIPELINE = """
from penstock import Pipeline

PIPELINE = Pipeline("mixed", objective_s=4)
PIPELINE.topic("a", "id long")
PIPELINE.topic("b", "id long")
PIPELINE.topic("c", "id long")

@PIPELINE.produces("a")
def rows(first_id, due):
    return {"id": range(first_id, first_id + len(due))}

@PIPELINE.batches(reads="a", writes="b", min_replicas=2, max_replicas=5, replicas=2)
def copy(batch):
    return batch

@PIPELINE.native(reads="b", writes="c", max_replicas=3)
def count(frame):
    return frame
"""


@pytest.fixture
def pipeline(tmp_path: Path) -> str:
    path = tmp_path / "mixed.py"
    path.write_text(PIPELINE)
    return str(path)


def prepare(pipeline: str, slots: int | None = None, **fields: Any) -> PreparedSparkRun:
    fields = {"policy": "decentralized", "controller": "none", **fields}
    return prepare_spark_run(SparkSpec(pipeline=pipeline, **fields), slots=slots)


def test_rules_come_from_options_and_bounds(pipeline: str) -> None:
    prepared = prepare(pipeline, speed_up=5, seed=7, params={"r": 0.6, "capacity": 40})
    rules = prepared.voting["copy"]
    assert (rules.min_replicas, rules.max_replicas) == (2, 5)
    # 15 s between decisions, five times as fast; half of the objective to work off a queue
    assert (rules.interval_s, rules.drain_s) == (3.0, 2.0)
    assert (rules.r, rules.capacity, rules.seed) == (0.6, 40.0, "7/0")
    assert [rules.is_fixed for rules in prepared.voting.values()] == [False, True]


def test_without_an_objective_a_queue_has_the_window_of_metrics(tmp_path: Path) -> None:
    path = tmp_path / "free.py"
    path.write_text(PIPELINE.replace(", objective_s=4", ""))
    assert prepare(str(path)).voting["copy"].drain_s == 60.0


def test_the_loop_has_no_votes(pipeline: str) -> None:
    assert prepare_spark_run(SparkSpec(pipeline=pipeline, controller="loop")).voting == {}


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"policy": "ds2"}, "--policy ds2"),
        ({"guards": {"budget": 3, "cooldown_s": 5}}, "--guard budget, --guard cooldown_s"),
        ({"policy": "ds2", "dry_run": True}, "--policy ds2, --dry-run"),
        ({"slots": 7}, "room for 7 replicas, and mixed may have 8"),
    ],
)
def test_what_needs_a_loop_is_refused_at_once(
    pipeline: str, fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(InputError) as error:
        prepare(pipeline, **fields)
    assert error.value.field == "--controller none"
    assert said in error.value.problem
    assert error.value.hint


def test_room_for_all_replicas_is_enough(pipeline: str) -> None:
    assert prepare(pipeline, slots=8).voting


def test_an_unknown_controller_is_named() -> None:
    with pytest.raises(InputError, match='"loop" or "none"'):
        SparkSpec.from_json({"pipeline": "words", "controller": "nobody"})


def test_files_of_runs_with_the_loop_stay_as_they_were() -> None:
    assert "controller" not in SparkSpec(pipeline="words", controller="loop").to_json()
    alone = SparkSpec(pipeline="words", controller="none", policy=default_policy("none"))
    assert alone.to_json()["controller"] == "none"
    assert SparkSpec.from_json(alone.to_json()) == alone


def test_a_replay_repeats_what_replicas_decided(pipeline: str) -> None:
    """Not even the bounds of a decider change it: it has taken effect."""
    header = prepare(pipeline).header()
    votes = VoteCount(before=2, after=4, voters=2, copies=2)
    now = snap(op("copy", 2, max_parallelism=5, useful_parallelism=3, votes=votes))
    for decider in (decider_of(header), prepare(pipeline).decider()):
        target = decider.decide(now).targets["copy"]
        assert (target.wanted, target.reason) == (4, Reason.INSTANCES_DUPLICATE)
    assert decider_of(header, "ds2").guards is not None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--policy", "ds2"], "--controller none: without a control loop"),
        (["--guard", "budget=3"], "--guard budget"),
        (["--compare", "ds2,psps"], "--compare: names policies"),
        (["--resume", "runs/mine"], "--resume: takes its options from run.toml"),
    ],
)
def test_the_command_refuses_with_one_message(
    pipeline: str, options: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = [] if "--resume" in options else [pipeline]
    assert main(["run", *place, "--controller", "none", *options]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert "Traceback" not in error


def test_python_refuses_the_same(pipeline: str) -> None:
    with pytest.raises(InputError, match="--policy ds2"):
        penstock.run(pipeline, policy="ds2", controller="none")
    with pytest.raises(InputError, match='"loop" or "none"'):
        penstock.run(pipeline, controller="nobody")
