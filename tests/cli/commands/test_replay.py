"""`penstock replay`, as a person uses it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main

Capture = pytest.CaptureFixture[str]
RECORDED = Path(__file__).parents[2] / "recorded"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Half an hour with DS2, with a guard and a parameter of its own."""
    out = tmp_path_factory.mktemp("runs") / "wave"
    options = ["--param", "memory_s=900", "--guard", "cooldown_s=120"]
    assert main(["simulate", "--minutes", "30", "--out", str(out), *options]) == 0
    return out


def answer(capsys: Capture, run: Path, *options: str) -> Any:
    capsys.readouterr()
    assert main(["replay", str(run), "--json", *options]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_policy_that_ran_gives_the_same_answers(run: Path, capsys: Capture) -> None:
    for options in ((), ("--policy", "ds2")):
        shown = answer(capsys, run, *options)
        assert shown["loop"] == "open" and shown["same_share"] == 1.0
        assert shown["recorded"] == shown["other"]
        assert shown["changes"]["recorded"] == shown["changes"]["other"] > 0
        assert all(one["recorded"] == one["other"] for one in shown["answers"])


def test_another_policy_keeps_the_guards_but_not_the_parameters(run: Path, capsys: Capture) -> None:
    shown = answer(capsys, run, "--policy", "dhalion", "--param", "scale_down=0.5")
    assert shown["other"]["guards"] == {"cooldown_s": "120"}
    assert shown["other"]["params"] == {"scale_down": "0.5"}
    assert shown["same_share"] < 1
    assert shown["ticks"] == len(shown["answers"])
    assert set(shown["operators"]) == set(shown["answers"][0]["other"])


def test_guards_can_be_replaced(run: Path, capsys: Capture) -> None:
    shown = answer(capsys, run, "--guard", "budget=3")
    assert shown["other"]["guards"] == {"cooldown_s": "120", "budget": "3"}
    assert max(sum(one["other"].values()) for one in shown["answers"]) <= 3


def test_the_table_says_that_it_is_open_loop(run: Path, capsys: Capture) -> None:
    assert main(["replay", str(run), "--policy", "hpa-cpu", "--all"]) == 0
    head, said, _, legend, columns, *rows = capsys.readouterr().out.splitlines()
    assert head == f"open loop: decisions of hpa-cpu on the snapshots of {run}"
    assert said == "The run was scaled by ds2; decisions of hpa-cpu have no effect."
    assert legend == "replicas wanted: ds2, recorded | hpa-cpu, replayed"
    assert columns.split() == ["from", "to", "ticks", "running", "source", "mapper", "sink", "all"]
    assert "latency" not in "\n".join(rows)
    shown = answer(capsys, run, "--policy", "hpa-cpu")
    ticks = sum(int(row.split()[2]) for row in rows[: rows.index("")])
    assert ticks == shown["ticks"]


def test_a_long_table_is_cut_and_says_so(
    run: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.commands.replay._ROWS", 2)
    assert main(["replay", str(run), "--policy", "hpa-varga"]) == 0
    assert "more rows; --all prints them" in capsys.readouterr().out


def test_in_a_closed_loop_the_policy_that_ran_has_the_same_figures(
    run: Path, capsys: Capture
) -> None:
    shown = answer(capsys, run, "--closed-loop")
    assert shown["loop"] == "closed"
    assert shown["recorded"] == shown["other"] == json.loads((run / "result.json").read_text())


def test_in_a_closed_loop_another_policy_is_simulated(run: Path, capsys: Capture) -> None:
    shown = answer(capsys, run, "--policy", "dhalion", "--closed-loop")
    assert main([
        "simulate", "--minutes", "30", "--policy", "dhalion", "--guard", "cooldown_s=120",
        "--json", "--no-out",
    ]) == 0  # fmt: skip
    assert shown["other"] == json.loads(capsys.readouterr().out)
    assert "answers" not in shown


def test_the_figures_say_that_it_is_a_closed_loop(run: Path, capsys: Capture) -> None:
    assert main(["replay", str(run), "--policy", "dhalion", "--closed-loop"]) == 0
    head, _, columns, *rows = capsys.readouterr().out.splitlines()
    assert head == (f"closed loop: the load of {run}, simulated with dhalion")
    assert columns.split() == ["ds2,", "recorded", "dhalion,", "simulated"]
    assert rows[0].startswith("replicas, mean")
    assert not any("|" in row for row in rows)


def test_a_run_that_did_not_finish_has_an_open_loop_only(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "cut"
    main(["simulate", "--minutes", "5", "--out", str(out)])
    (out / "result.json").unlink()
    assert main(["replay", str(out)]) == 0
    assert main(["replay", str(out), "--closed-loop"]) == 2
    assert f"{out}: has no result.json: the run did not finish" in capsys.readouterr().err


def test_a_run_of_another_version_is_told(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "old"
    main(["simulate", "--minutes", "5", "--out", str(out)])
    asked = (out / "run.toml").read_text()
    (out / "run.toml").write_text(asked.replace('penstock = "', 'penstock = "0.0.'))
    assert main(["replay", str(out)]) == 0
    assert "note: this run was recorded by penstock 0.0." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--policy", "dalion"], "unknown policy 'dalion'\nhint: did you mean 'dhalion'?"),
        (["--param", "target=1"], "target: unknown parameter of ds2"),
        (["--guard", "budget=0"], "budget: must be at least 1, got 0"),
    ],
)
def test_mistakes_are_named(run: Path, options: list[str], problem: str, capsys: Capture) -> None:
    capsys.readouterr()
    assert main(["replay", str(run), *options]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and problem in captured.err


def test_what_is_not_a_run_is_named(tmp_path: Path, capsys: Capture) -> None:
    assert main(["replay", str(tmp_path)]) == 2
    assert f"{tmp_path}: is not a run directory" in capsys.readouterr().err


#: Of the run on Spark.
PARAMS = {"scope": "path", "r_max": 2.5, "alpha": 0.5, "default_scv": 1.0}
GUARDS = {
    "bounds": True,
    "hold_while_draining": 2.5,
    "cooldown_up_s": 0.25,
    "cooldown_down_s": 1.0,
}


@pytest.fixture
def real_run(tmp_path: Path) -> Path:
    """A minute on Spark, killed once and resumed, as recorded."""
    shutil.copy(RECORDED / "run-spark-v1.toml", tmp_path / "run.toml")
    shutil.copy(RECORDED / "journal-spark-v1.jsonl", tmp_path / "journal.jsonl")
    return tmp_path


def test_a_run_that_was_not_simulated_gives_the_same_answers(
    real_run: Path, capsys: Capture
) -> None:
    shown = answer(capsys, real_run)
    assert (shown["ticks"], shown["same_share"]) == (29, 1.0)
    assert shown["recorded"] == shown["other"]
    assert shown["recorded"] == {"policy": "queueing", "params": PARAMS, "guards": GUARDS}


def test_a_run_that_was_not_simulated_can_be_asked_otherwise(
    real_run: Path, capsys: Capture
) -> None:
    shown = answer(capsys, real_run, "--policy", "hpa-cpu", "--guard", "budget=6")
    assert shown["other"] == {
        "policy": "hpa-cpu",
        "params": {},
        "guards": {**GUARDS, "budget": "6"},
    }
    assert shown["same_share"] < 1
    shown = answer(capsys, real_run, "--param", "r_max=10")
    assert shown["other"]["params"] == {**PARAMS, "r_max": "10"}
    assert shown["wanted"]["other"] < shown["wanted"]["recorded"]


def test_a_run_that_was_not_simulated_has_an_open_loop_only(
    real_run: Path, capsys: Capture
) -> None:
    assert main(["replay", str(real_run), "--closed-loop"]) == 2
    assert capsys.readouterr().err == (
        f"error: {real_run}: --closed-loop: this run was not simulated\nhint: omit --closed-loop\n"
    )


def test_a_run_recorded_by_an_older_version_is_answered(tmp_path: Path, capsys: Capture) -> None:
    for kept, name in (("run-v1.toml", "run.toml"), ("journal-v1.jsonl", "journal.jsonl")):
        shutil.copy(RECORDED / kept, tmp_path / name)
    shown = answer(capsys, tmp_path)
    assert shown["ticks"] == 4 and shown["same_share"] == 1.0
