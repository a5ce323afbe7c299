"""Calibrations and twins, against runs whose every number is known."""

import json
import shutil
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.twin.twin_runs import make_run

from penstock.cli.main import main
from penstock.engines.simulator.batches.model import Batches, Costs
from penstock.engines.simulator.library import load_profile
from penstock.engines.simulator.model import SimulatedOperator, SimulatedPipeline
from penstock.engines.simulator.profile import Profile, Rescaling
from penstock.errors import InputError
from penstock.runs.result_parts import CountStatistics, LatencyStatistics, RunScores
from penstock.runs.scores import score
from penstock.runs.spec import SparkSpec
from penstock.twin.calibration import Calibration, calibrate
from penstock.twin.calibration_runs import read_calibration_run
from penstock.twin.errors import BOUNDS, compare_figures
from penstock.twin.profile_toml import to_toml
from penstock.twin.twin import read_recorded_run, simulate_twin

pytestmark = pytest.mark.slow

RULES = Batches(
    fixed_s=0.08,
    per_replica_s=0.012,
    per_other_s=0.02,
    between_s=0.1,
    poll_s=0.04,
    look_s=0.06,
    cold=1.5,
    cold_s=6.0,
    noise=0.25,
)


def operator(name: str, upstream: tuple[str, ...], costs: Costs, **more: Any) -> SimulatedOperator:
    return SimulatedOperator(
        name=name,
        upstream=upstream,
        capacity_rate=costs.capacity_rate(RULES),
        distribution="gamma",
        scv=0.2,
        costs=costs,
        **more,
    )


Q1 = SimulatedPipeline(
    name="q1",
    build_args={"service_s": "0.01"},
    operators=(
        operator("source", (), Costs(row_s=0.016, call_s=0.01, chunk_rows=4, topic="bids")),
        operator("mapper", ("source",), Costs(row_s=0.01, call_s=0.02, chunk_rows=4)),
        operator("sink", ("mapper",), Costs(row_s=0.006, chunk_rows=4, cpu=0.5)),
    ),
)
WINDOW = Costs(row_s=0.02, call_s=0.05, slice_s=0.004, slices=24, out_delay_s=14.0, cpu=0.3)
Q11 = SimulatedPipeline(
    name="q11",
    build_args={"service_s": "0.02"},
    operators=(
        operator("source", (), Costs(row_s=0.005, chunk_rows=4, topic="bids")),
        operator("window", ("source",), WINDOW, sent={"sink": 0.1}),
        operator("sink", ("window",), Costs(row_s=0.003, chunk_rows=4)),
    ),
)
KNOWN = Profile(
    name="known",
    resolution="batches",
    batches=RULES,
    rescaling=Rescaling(scope="native"),
    pipelines={"q1": Q1, "q11": Q11},
)
Q1_SPEC = SparkSpec(
    pipeline="q1",
    workload="testrun",
    policy="ds2",
    speed_up=30.0,
    rate_scale=0.0008,
    minutes=60,
    guards={"cooldown_s": "300", "overprovision": "1.2"},
    build_args={"service_s": "0.01"},
)
Q11_SPEC = replace(Q1_SPEC, pipeline="q11", rate_scale=0.001, build_args={"service_s": "0.02"})


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One run of each query under testrun, and one of query 1 under another load."""
    root = tmp_path_factory.mktemp("runs")
    make_run(root / "q1-testrun", Q1_SPEC, KNOWN)
    make_run(root / "q11-testrun", Q11_SPEC, KNOWN)
    make_run(root / "q1-cosine", replace(Q1_SPEC, workload="cosine", rate_scale=0.0001), KNOWN)
    return root


@pytest.fixture(scope="module")
def fitted(runs: Path) -> Calibration:
    return calibrate([read_calibration_run(runs / name) for name in ("q1-testrun", "q11-testrun")])


def truth(path: tuple[str, ...]) -> float | None:
    """What the simulator was told."""
    if path[0] == "batches":
        return float(getattr(RULES, path[1]))
    if path[0] != "pipelines" or len(path) < 5:
        return None
    op = next(op for op in KNOWN.pipelines[path[1]].operators if op.name == path[3])
    if path[4] == "costs":
        return float(getattr(op.costs, path[5]))
    return op.sent.get(path[5], 1.0) if path[4] == "sent" else None


@pytest.mark.parametrize(
    "path",
    [
        *[f"batches.{name}" for name in ("per_replica_s", "cold", "noise")],
        *[f"pipelines.q1.operators.{op}.costs.row_s" for op in ("source", "mapper", "sink")],
        "pipelines.q1.operators.mapper.costs.call_s",
        "pipelines.q1.operators.sink.costs.cpu",
        "pipelines.q11.operators.window.costs.row_s",
        "pipelines.q1.operators.mapper.sent.sink",
    ],
)
def test_a_calibration_finds_what_the_simulator_was_told(fitted: Calibration, path: str) -> None:
    (found,) = [one for one in fitted.estimates if ".".join(one.path) == path]
    known = truth(found.path)
    assert found.is_fitted
    assert found.fit is not None
    assert known is not None
    # an interval of 95 % misses now and then, but never by much
    wide = found.fit.high - found.fit.low
    assert found.fit.low - 0.5 * wide <= known <= found.fit.high + 0.5 * wide
    assert found.value == pytest.approx(known, rel=0.35)


@pytest.mark.parametrize(
    ("path", "within"),
    [
        # others are counted when the plan is made, a little after the look; what that misses of
        # them counts as overhead of every batch
        ("batches.per_other_s", 0.015),
        ("batches.fixed_s", 0.02),
        ("batches.between_s", 0.02),
        ("batches.poll_s", 0.02),
        ("batches.look_s", 0.02),
        ("batches.cold_s", 2.5),
        ("pipelines.q11.operators.window.costs.out_delay_s", 2.5),
        ("pipelines.q11.operators.window.sent.sink", 0.02),
    ],
)
def test_what_is_seen_indirectly_is_near(fitted: Calibration, path: str, within: float) -> None:
    (found,) = [one for one in fitted.estimates if ".".join(one.path) == path]
    known = truth(found.path)
    assert known is not None
    assert found.value == pytest.approx(known, abs=within)


def test_sessions_are_told_from_a_share_of_the_rows(fitted: Calibration, tmp_path: Path) -> None:
    plain, sessions = Q11.operators[1], WINDOW.but(new_keys=0.03)
    window = replace(plain, costs=sessions, sent={})
    pipeline = replace(Q11, operators=(Q11.operators[0], window, Q11.operators[2]))
    make_run(tmp_path / "run", Q11_SPEC, replace(KNOWN, pipelines={"q11": pipeline}))
    found = calibrate([read_calibration_run(tmp_path / "run")])
    place = ("pipelines", "q11", "operators", "window")
    assert found.value(*place, "costs", "new_keys") == pytest.approx(0.03, rel=0.15)
    assert (*place, "sent", "sink") not in {e.path for e in found.estimates}
    assert (*place, "costs", "new_keys") not in {e.path for e in fitted.estimates}


def test_what_cannot_be_fitted_is_said(fitted: Calibration) -> None:
    (pause,) = [one for one in fitted.estimates if one.path == ("rescaling", "pause_s")]
    assert not pause.is_fitted
    assert "not fitted" in pause.source


def test_a_profile_can_be_read_again_and_says_where_it_is_from(
    fitted: Calibration, tmp_path: Path
) -> None:
    text = to_toml(fitted)
    (tmp_path / "mine.toml").write_text(text, encoding="utf-8")
    profile = load_profile(str(tmp_path / "mine.toml"))
    assert profile.resolution == "batches"
    assert profile.runs == ("q1-testrun", "q11-testrun")
    assert set(profile.pipelines) == {"q1", "q11"}
    window = profile.pipelines["q11"].operators[1]
    assert window.costs is not None
    assert window.costs.slices == 24
    row = next(line for line in text.splitlines() if line.startswith("row_s"))
    assert " to " in row
    assert "batches of q1-testrun" in row
    assert tomllib.loads(text)["pipelines"]["q1"]["operators"]["source"]["max_replicas"] == 8


def test_a_profile_of_one_load_predicts_another(
    runs: Path, fitted: Calibration, tmp_path: Path
) -> None:
    (tmp_path / "mine.toml").write_text(to_toml(fitted), encoding="utf-8")
    profile = load_profile(str(tmp_path / "mine.toml"))
    real = read_recorded_run(runs / "q1-cosine")
    twins = [score(simulate_twin(real, profile, seed), None) for seed in range(3)]
    found = compare_figures(score(real.ticks, None), twins)
    assert [one.is_inside for one in found] == [True] * 3


def test_runs_with_other_arguments_do_not_go_together(runs: Path) -> None:
    one = read_calibration_run(runs / "q1-testrun")
    with pytest.raises(InputError, match="different --set values"):
        calibrate([one, replace(one, build_args={"service_s": "0.5"})])


def scores_of(replicas: float, latency_s: float | None, rescales: int) -> RunScores:
    return RunScores(
        replicas=CountStatistics(avg=replicas, max=20),
        latency_s=LatencyStatistics(avg=latency_s),
        rescales=rescales,
    )


def test_errors_are_shares_or_numbers() -> None:
    real = scores_of(10.0, 2.0, 5)
    twin = scores_of(11.5, 1.4, 8)
    replicas, latency, rescales = compare_figures(real, [twin])
    assert (replicas.error, replicas.is_inside) == (pytest.approx(0.15), True)
    assert (latency.error, latency.is_inside) == (pytest.approx(-0.3), False)
    assert (rescales.error, rescales.is_inside) == (3, False)
    assert BOUNDS[0].error(0.0, 0.0) == 0


@pytest.mark.parametrize(
    ("real", "twins", "error", "inside"),
    [
        (2.0, [2.2, None], 0.1, True),
        (2.0, [None, None], None, False),
        (None, [2.0], None, False),
        (None, [None], None, True),
    ],
)
def test_who_has_no_latency_is_not_said_to_have_none(
    real: float | None, twins: list[float | None], error: float | None, inside: bool
) -> None:
    scores = [scores_of(1.0, latency_s, 0) for latency_s in (real, *twins)]
    latency = compare_figures(scores[0], scores[1:])[1]
    assert latency.error == (error if error is None else pytest.approx(error))
    assert latency.is_inside is inside


# --- commands


def test_calibrate_then_twin(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile, picture, table = tmp_path / "p.toml", tmp_path / "both.svg", tmp_path / "twin.md"
    assert main(["calibrate", str(runs / "q1-testrun"), "-o", str(profile)]) == 0
    shown = capsys.readouterr().out
    for name in ("per-replica capacity", "selectivity", "batch overhead", "batch floor",
                 "rescale pauses", "monitor delay", "noise", "interference"):  # fmt: skip
        assert name in shown
    asked = ["twin", str(runs / "q1-cosine"), "--profile", str(profile), "--seeds", "2"]
    assert main([*asked, "--svg", str(picture), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["runs"][0]["figures"][0]["figure"] == "mean replicas"
    assert len(told["runs"][0]["figures"][0]["twins"]) == 2
    assert picture.read_text(encoding="utf-8").count("</svg>") == 1
    both = [str(runs / "q1-cosine"), str(runs / "q1-testrun")]
    assert main(["twin", *both, "--profile", str(profile), "--seeds", "1",
                 "--markdown", str(table)]) == 0  # fmt: skip
    capsys.readouterr()
    text = table.read_text(encoding="utf-8")
    assert "of 1 runs are inside" in text
    assert "| q1 | cosine | ds2 |" in text
    assert "fitted" in text
    assert "a row waits 0.01 s" in text


OWN_FILE = """
import pyarrow as pa
from penstock import Pipeline

pipeline = Pipeline("mine", objective_s=2)
pipeline.topic("rows", "id long")
pipeline.topic("kept", "id long")

@pipeline.produces("rows")
def rows(first_id, due):
    return pa.table({"id": range(first_id, first_id + len(due))})

@pipeline.batches(reads="rows", writes="kept")
def keep(batch):
    return batch
"""
OWN = SimulatedPipeline(
    name="mine",
    operators=(operator("keep", (), Costs(row_s=0.016, call_s=0.01, topic="rows")),),
)


def test_calibrate_then_twin_of_an_own_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, profile = tmp_path / "file.py", tmp_path / "p.toml"
    file.write_text(OWN_FILE, encoding="utf-8")
    spec = replace(Q1_SPEC, pipeline=str(file), build_args={}, minutes=20)
    run = str(make_run(tmp_path / "run", spec, replace(KNOWN, pipelines={"mine": OWN})))
    assert main(["calibrate", run, "-o", str(profile)]) == 0
    assert set(load_profile(str(profile)).pipelines) == {"mine"}
    capsys.readouterr()
    assert main(["twin", run, "--profile", str(profile), "--seeds", "1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)["runs"][0]
    assert (shown["query"], len(shown["figures"])) == ("mine", 3)
    spec_options = ["--query", "mine", "--workload", "cosine * 0.00001", "--minutes", "5"]
    assert main(["simulate", "--engine", str(profile), *spec_options, "--no-out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["processed_records"] > 0


def test_an_older_profile_names_an_own_file_by_its_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, profile = tmp_path / "file.py", tmp_path / "p.toml"
    file.write_text(OWN_FILE, encoding="utf-8")
    spec = replace(Q1_SPEC, pipeline=str(file), build_args={}, minutes=20)
    run = str(make_run(tmp_path / "run", spec, replace(KNOWN, pipelines={"mine": OWN})))
    assert main(["calibrate", run, "-o", str(profile)]) == 0
    named = profile.read_text(encoding="utf-8").replace("pipelines.mine", f'pipelines."{file}"')
    profile.write_text(named, encoding="utf-8")
    assert main(["twin", run, "--profile", str(profile), "--seeds", "1"]) == 0
    capsys.readouterr()


def test_different_pipelines_of_one_name_do_not_go_together(runs: Path) -> None:
    run = read_calibration_run(runs / "q1-testrun")
    parts = {name: part for name, part in run.parts.items() if name != "sink"}
    with pytest.raises(InputError, match="different pipelines named q1"):
        calibrate([run, replace(run, parts=parts)])


def test_simulate_takes_operators_from_the_profile(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profile = tmp_path / "p.toml"
    assert main(["calibrate", str(runs / "q1-testrun"), "-o", str(profile)]) == 0
    capsys.readouterr()
    spec = ["--query", "q1", "--workload", "cosine * 0.0001", "--minutes", "5"]
    assert main(["simulate", "--engine", str(profile), *spec, "--no-out", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["processed_records"] > 0


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (["calibrate", "nowhere"], "there is no such directory"),
        (["calibrate", "{runs}/q1-testrun", "-o", "p.json"], "must end in .toml"),
        (["twin", "{runs}/q1-testrun", "--seeds", "0"], "must be at least 1"),
        (
            ["twin", "{runs}/q1-testrun", "{runs}/q1-cosine", "--svg", "a.svg"],
            "works with one run only",
        ),
        (["twin", "{runs}/q1-testrun", "--profile", "flink"], "no measured pipeline 'q1'"),
        (["twin", "{runs}/q1-testrun"], "q1 was measured with service_s=0.015, the run has"),
        (["twin", "nowhere", "--profile", "flink"], "there is no such directory"),
    ],
)
def test_mistakes_are_named(
    runs: Path, given: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([word.format(runs=runs) for word in given]) == 2
    assert problem in capsys.readouterr().err


def test_a_run_that_was_cut_has_no_twin(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(runs / "q1-testrun", tmp_path / "cut")
    (tmp_path / "cut" / "result.json").unlink()
    assert main(["twin", str(tmp_path / "cut")]) == 2
    told = capsys.readouterr().err
    assert "has not finished" in told
    assert f"penstock run --resume {tmp_path / 'cut'}" in told


def test_when_a_run_begins_all_but_the_work_takes_longer() -> None:
    rules = RULES.but(cold=2.0, cold_s=5.0)
    assert [round(rules.slower(at_s), 2) for at_s in (0.0, 5.0, 60.0)] == [3.0, 1.74, 1.0]


def test_a_run_without_batches_cannot_be_calibrated_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "plain")
    assert main(["simulate", "--minutes", "5", "--out", out, "--json"]) == 0
    assert main(["calibrate", out]) == 2
    assert main(["twin", out]) == 2
    shown = capsys.readouterr().err
    assert "has no batches" in shown
    assert "is not a run on Spark" in shown
