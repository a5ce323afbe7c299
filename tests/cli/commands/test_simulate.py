"""`penstock simulate`, as a person uses it."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.runs.run_directory import read_run
from penstock.runs.spec import SimulationSpec

Capture = pytest.CaptureFixture[str]


def figures(capsys: Capture, *options: str) -> dict[str, Any]:
    """The JSON of a short run that is not kept."""
    argv = ["simulate", "--json", "--no-out", *options]
    assert main(argv if "--minutes" in options else [*argv, "--minutes", "10"]) == 0
    shown: dict[str, Any] = json.loads(capsys.readouterr().out)
    return shown


def test_json_has_every_figure(capsys: Capture) -> None:
    shown = figures(capsys)
    assert {
        "replicas", "latency_s", "rescales", "rescales_possible", "offered_records",
        "processed_records", "dropped_records", "backlog_records", "slo", "replica_hours",
        "pause_s", "operators",
    } <= set(shown)  # fmt: skip
    assert set(shown["replicas"]) == {"avg", "max"}
    assert set(shown["latency_s"]) == {"avg", "p50", "p95", "p99", "max"}
    assert set(shown["slo"]) == {"objective_s", "violated_share"}
    assert set(shown["operators"]) == {"source", "mapper", "sink"}
    assert "hindsight" not in shown


def test_no_record_goes_missing(capsys: Capture) -> None:
    topic = ("--profile", "queues.retention_s=60", "--profile", "queues.retention_block_s=0")
    shown = figures(capsys, "--initial", "1", *topic)
    assert shown["dropped_records"] > 0
    assert shown["offered_records"] == (
        shown["processed_records"] + shown["dropped_records"] + shown["backlog_records"]
    )


def test_the_defaults_are_the_published_set_up(capsys: Capture) -> None:
    explicit = [
        *("--query", "q1", "--workload", "cosine", "--policy", "ds2", "--engine", "flink"),
        *("--seed", "1066", "--interval", "15", "--mode", "operator"),
        *("--guard", "budget=80", "--guard", "max_increase=15", "--guard", "cooldown_s=300"),
        *("--guard", "overprovision=1.2"),
    ]
    plain, told = figures(capsys), figures(capsys, *explicit)
    assert plain.pop("spec") == {
        "query": "q1", "workload": "cosine", "policy": "ds2", "engine": "flink",
        "minutes": 10, "seed": 1066, "mode": "operator",
    }  # fmt: skip
    told.pop("spec")
    assert plain == told


@pytest.mark.parametrize(
    "options",
    [
        ("--policy", "hpa-cpu", "--param", "target=0.2"),
        ("--guard", "max_increase=1", "--initial", "1"),
        ("--workload-param", "mean=900000"),
        ("--profile", "monitor.busy_sees=0.3"),
        ("--initial", "source:9"),
        ("--seed", "7"),
        ("--interval", "60"),
        ("--engine", "spark"),
        ("--query", "q11"),
    ],
)
def test_every_option_changes_the_run(options: tuple[str, ...], capsys: Capture) -> None:
    plain, told = figures(capsys), figures(capsys, *options)
    assert plain["latency_s"] != told["latency_s"]


def test_the_reactive_mode_scales_the_pipeline_as_one(capsys: Capture) -> None:
    shown = figures(capsys, "--mode", "reactive", "--policy", "hpa-varga")
    assert list(shown["operators"]) == ["job"]


def test_an_objective_is_scored(capsys: Capture) -> None:
    strict, mild = figures(capsys, "--objective", "0.001"), figures(capsys, "--objective", "5000")
    assert strict["slo"] == {"objective_s": 0.001, "violated_share": 1.0}
    assert mild["slo"] == {"objective_s": 5000.0, "violated_share": 0.0}


def test_hindsight_is_added_when_asked_for(capsys: Capture) -> None:
    shown = figures(capsys, "--hindsight", "--workload", "constant")
    least = shown["hindsight"]["replica_hours"]
    assert least > 0
    assert shown["hindsight"]["ratio"] == pytest.approx(shown["replica_hours"] / least, rel=1e-4)


def test_the_run_is_kept_where_it_was_asked_for(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "deep" / "run"
    argv = ["simulate", "--minutes", "5", "--json", "--out", str(out), "--param", "memory_s=600"]
    assert main(argv) == 0
    captured = capsys.readouterr()
    assert captured.err == f"run directory: {out}\n"
    assert captured.out == (out / "result.json").read_text()
    run = read_run(out)
    assert SimulationSpec.from_json(run.spec) == SimulationSpec(
        minutes=5, params={"memory_s": "600"}
    )
    assert len(run.journal.ticks) == 20
    assert run.journal.run["params"] == {"memory_s": 600.0}
    assert run.journal.run["guards"]["overprovision"] == 1.2
    assert main(argv) == 2
    assert "this directory is not empty" in capsys.readouterr().err


def test_by_default_it_is_kept_under_runs(
    tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "--minutes", "1"]) == 0
    assert main(["simulate", "--minutes", "1", "--no-out"]) == 0
    (kept,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"q1-cosine-ds2-\d{8}-\d{6}", kept.name)
    assert read_run(kept).result is not None


def test_people_get_charts_and_figures(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["simulate", "--minutes", "30", "--no-out", "--policy", "dhalion"]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    lines = captured.out.splitlines()
    assert lines[0] == "q1 under cosine, dhalion on flink, 30 min, seed 1066"
    for name in ("offered", "replicas", "changes", "latency"):
        assert any(line.lstrip().startswith(f"{name} │") for line in lines)
    marks = next(line for line in lines if "changes │" in line)
    assert "▲" in marks or "▼" in marks
    assert max(map(len, lines)) == 80
    assert re.search(r"latency, s( +[\d.,]+){5}\n", captured.out)
    assert re.search(r"objective +60 s, missed by [\d.]+ % of the records\n", captured.out)
    assert re.search(r"source +[\d.]+ +\d+ +\d+\n", captured.out)


def test_the_charts_fit_a_narrow_and_a_wide_terminal(
    capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for columns, widest in (("60", 60), ("300", 100)):
        monkeypatch.setenv("COLUMNS", columns)
        main(["simulate", "--minutes", "30", "--no-out"])
        axis = next(line for line in capsys.readouterr().out.splitlines() if "└" in line)
        assert len(axis) == widest


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--policy", "ds3"], "policy: unknown policy 'ds3'\nhint: did you mean 'ds2'?"),
        (["--engine", "flnk"], "engine: unknown engine 'flnk'\nhint: did you mean 'flink'"),
        (["--query", "q99"], "query: unknown query 'q99'"),
        (["--mode", "both"], "mode: must be operator or reactive, got 'both'"),
        (["--param", "x=1"], "x: unknown parameter of ds2"),
        (["--guard", "bugdet=3"], "bugdet: unknown guard\nhint: did you mean 'budget'?"),
        (["--profile", "monitr.missing=1"], "profile.monitr.missing: unknown"),
        (["--initial", "sorce:3"], "initial.sorce: unknown operator\nhint: did you mean 'source'?"),
        (["--initial", "many"], "--initial: must be a whole number"),
        (["--initial", "0"], "replicas: must fit its bounds, got 0"),
        (["--interval", "0"], "interval: must be whole seconds, at least 1, got 0"),
        (["--interval", "2.5"], "interval: must be whole seconds, at least 1, got 2.5"),
        (["--objective", "-1"], "objective: must be above 0 and finite, got -1"),
        (["--minutes", "0"], "minutes: must be from 1"),
        (["--policy", "enforcer"], "policy: enforcer decides about hosts"),
    ],
)
def test_mistakes_are_named_before_anything_is_kept(
    options: list[str], problem: str, tmp_path: Path, capsys: Capture
) -> None:
    out = tmp_path / "run"
    assert main(["simulate", "--out", str(out), *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and problem in captured.err
    assert not out.exists()


def test_a_mistake_that_shows_at_the_first_decision_leaves_no_half_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "run"
    assert main(["simulate", "--minutes", "1", "--guard", "budget=2", "--out", str(place)]) == 2
    assert "budget: 2 cannot give each of 3 operators a replica" in capsys.readouterr().err
    assert not place.exists()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("return 'more'", "mine answered nonsense: a str, not a Decision"),
        ("return 1 / 0", "mine failed: ZeroDivisionError: division by zero (mine.py:3)"),
        ("raise SystemExit(3)", "mine failed: SystemExit: 3 (mine.py:3)"),
    ],
)
def test_a_policy_that_fails_is_an_error_as_in_decide(
    body: str, told: str, tmp_path: Path, capsys: Capture
) -> None:
    policy, kept = tmp_path / "mine.py", tmp_path / "run"
    policy.write_text(
        "from penstock.core.policy import Params, Policy\n"
        f"def decide(history, applied, params):\n    {body}\n"
        'POLICY = Policy(name="mine", summary="", paper="", decide=decide, params=Params)\n'
    )
    assert main(["simulate", "--minutes", "1", "--policy", str(policy), "--out", str(kept)]) == 1
    assert capsys.readouterr().err == f"error: {told}\n"
    assert not kept.exists()
