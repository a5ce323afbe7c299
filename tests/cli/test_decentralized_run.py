"""`penstock decentralized run`: exit codes, streams, JSON."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.runs.run_directory import read_run

RUN = ["decentralized", "run"]
SHORT = [*RUN, "--operators", "2", "--seconds", "3", "--interval", "0.5"]


@pytest.mark.slow
def test_a_run_prints_json_and_draws_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "run.png"
    out_dir = tmp_path / "run"
    options = ["--min-actions", "3", "--json", "--picture", str(picture), "--out", str(out_dir)]
    assert main([*SHORT, *options]) == 0
    out, err = capsys.readouterr()
    data: dict[str, Any] = json.loads(out)
    assert data["is_exactly_once"] is True
    assert data["records"]["lost"] == 0
    assert data["actions"]["total"] >= 3
    assert {"mean", "p05", "p95"} <= set(data["accuracy"])
    assert data["under_load"]["processes"]["actions"] <= data["actions"]["total"]
    assert data["under_load"]["simulator"]["accuracy_mean"] > 0
    assert "parse" in err.splitlines()[0]
    assert picture.read_bytes().startswith(b"\x89PNG")
    # the run directory has one tick per sample, and the end
    run = read_run(out_dir)
    *ticks, last = run.journal.ticks
    assert [tick.at for tick in ticks] == [sample["at_s"] for sample in data["samples"]]
    assert [tick.snapshot.extra["messages"] for tick in ticks if tick.snapshot] == [
        sum(op["messages"] for op in sample["operators"]) for sample in data["samples"]
    ]
    assert last.status.processed_records == data["records"]["sent"] and last.status.is_over
    assert run.result is not None and run.spec["options"]["min_actions"] == 3


@pytest.mark.slow
def test_a_run_without_enough_actions_fails(capsys: pytest.CaptureFixture[str]) -> None:
    options = ["--seconds", "1", "--interval", "60", "--min-actions", "1", "--load", "brownian"]
    assert main([*SHORT, *options]) == 1
    out, _ = capsys.readouterr()
    assert "PROBLEM: 0 scaling actions, --min-actions is 1" in out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--delay-ms", "fast"], "--delay-ms: must be milliseconds, LOW:HIGH, got 'fast'"),
        (["--delay-ms", "9:1"], "--delay-ms: must be between 9 and 10000, got 1"),
        (["--delay-ms", "nan"], "--delay-ms: must be between 0 and 10000, got nan"),
        (["--load", "wawe"], "did you mean 'wave'?"),
        (["--operators", "9"], "--operators: must be between 1 and 5, got 9"),
        (["--picture", "run.bmp"], "must end in .svg, .png, .pdf"),
    ],
)
def test_wrong_options_are_named_before_anything_starts(
    options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, *options]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert message in err
