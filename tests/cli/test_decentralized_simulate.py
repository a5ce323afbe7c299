"""The command `penstock decentralized simulate`."""

import json
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.runs.run_directory import read_run

Capture = pytest.CaptureFixture[str]
SMALL = ["--operators", "3", "--instances", "4", "--steps", "40"]


def simulate(*options: str) -> int:
    return main(["decentralized", "simulate", *SMALL, *options])


def test_json_has_figures_and_one_value_per_step(capsys: Capture) -> None:
    assert simulate("--seed", "7", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    assert set(data["accuracy"]) == {"mean", "p05", "p95"}
    assert 0 < data["ideal_throughput"] <= 1
    assert {"sent", "processed", "lost", "waiting"} <= set(data["records"])
    assert len(data["messages"]) == len(data["instances"]) == len(data["load"]) == 40
    assert data["instances"][0] == 12 and len(data["operators"]) == 3
    assert data["records"]["sent"] == sum(data["load"])
    assert data["setup"]["seed"] == 7


def test_the_same_seed_prints_the_same(capsys: Capture) -> None:
    printed = []
    for seed in ("1", "1", "2"):
        assert simulate("--seed", seed) == 0
        printed.append(capsys.readouterr().out)
    assert printed[0] == printed[1] != printed[2]


def test_the_text_has_a_table_charts_and_totals(capsys: Capture) -> None:
    assert simulate() == 0
    text = capsys.readouterr().out
    assert text.startswith("3 operators x 4 instances of 500 records/step, brownian load")
    for word in ("accuracy", "instances  ", "messages  ", "records ", "0 lost", "█"):
        assert word in text


def test_both_modes_print_the_same_but_their_name(capsys: Capture) -> None:
    assert simulate("--mode", "exact") == 0
    exact = capsys.readouterr().out
    assert simulate("--mode", "counted") == 0
    assert capsys.readouterr().out.replace("counted messages", "exact messages") == exact


def test_seeds_give_means_with_intervals(capsys: Capture) -> None:
    assert simulate("--seeds", "4", "--mode", "counted", "--json") == 0
    data = json.loads(capsys.readouterr().out)
    interval = data["figures"]["accuracy.mean"]
    assert data["seeds"] == 4 and interval["low"] < interval["mean"] < interval["high"]
    assert simulate("--seeds", "1", "--mode", "counted") == 0
    assert "records.lost" in capsys.readouterr().out


def test_figures_are_written_as_svg_and_png(tmp_path: Path, capsys: Capture) -> None:
    assert simulate("--figures", str(tmp_path / "new"), "--mode", "counted") == 0
    names = sorted(path.name for path in (tmp_path / "new").iterdir())
    assert names == sorted(f"figure-{n}.{end}" for n in (3, 4, 5, 6) for end in ("png", "svg"))
    assert (tmp_path / "new/figure-6.png").read_bytes().startswith(b"\x89PNG")
    assert "figure-5.svg" in capsys.readouterr().err


def test_a_run_that_is_too_short_for_traffic_has_empty_figures(tmp_path: Path) -> None:
    assert simulate("--steps", "3", "--figures", str(tmp_path / "short")) == 0
    assert (tmp_path / "short/figure-6.png").read_bytes().startswith(b"\x89PNG")


def test_a_trace_is_played(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "load.csv"
    path.write_text("time,rate\n" + "".join(f"{i},{1000 + i}\n" for i in range(40)))
    assert simulate("--load", "trace", "--trace", str(path), "--json") == 0
    assert json.loads(capsys.readouterr().out)["load"] == [3 * (1000 + i) for i in range(40)]


def test_faults_are_reported(capsys: Capture) -> None:
    options = ["--message-loss", "0.2", "--message-delay", "1", "--record-delay", "1"]
    assert simulate(*options, "--crashes", "2", "--volatility", "0.5") == 0
    text = capsys.readouterr().out
    assert "20.00% of messages lost, messages up to 1 steps late" in text and "2 crashes" in text


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--operators", "1"], "--operators: must be at least 2"),
        (["--capacity", "many"], "--capacity: must be a whole number, got 'many'"),
        (["--message-loss", "2"], "--message-loss: must be at least 0 and at most 1, got 2"),
        (["--crashes", "1", "--mode", "counted"], "--mode: counted messages arrive always"),
        (["--load", "trace"], "--trace: the load 'trace' needs a CSV file"),
        (["--load", "trace", "--trace", "none.csv"], "none.csv: there is no such file"),
        (["--seeds", "0"], "--seeds: must be at least 1, got 0"),
        (["--seeds", "2", "--figures", "x"], "--figures: shows one seed"),
    ],
)
def test_mistakes_are_named(options: list[str], problem: str, capsys: Capture) -> None:
    assert simulate(*options) == 2
    assert problem in capsys.readouterr().err


def test_a_run_directory_is_read_like_that_of_any_run(tmp_path: Path, capsys: Capture) -> None:
    out = tmp_path / "alone"
    assert simulate("--seed", "7", "--json", "--out", str(out)) == 0
    data = json.loads(capsys.readouterr().out)
    run = read_run(out)
    ticks = run.journal.ticks
    assert [sum(tick.status.running.values()) for tick in ticks] == data["instances"]
    assert [tick.snapshot.extra["messages"] for tick in ticks] == data["messages"]
    last = ticks[-1].status
    assert (last.offered_records, last.processed_records) == (
        data["records"]["sent"],
        data["records"]["processed"],
    )
    assert last.backlog_records == data["records"]["waiting"] and last.is_over
    decided = [tick.decision.changes for tick in ticks if tick.decision.is_change]
    assert len(decided) > 3
    assert run.result is not None and run.result.replicas.max >= max(data["instances"])
    # other commands know it, and say how to repeat it
    assert main(["explain", str(out), "--at", "15"]) == 0
    assert main(["replay", str(out), "--policy", "ds2"]) == 0
    assert main(["report", str(out), "-o", str(tmp_path / "report.html")]) == 0
    command = "penstock decentralized simulate --operators 3 --instances 4 --steps 40 --seed 7"
    assert command in (tmp_path / "report.html").read_text()


def test_a_directory_that_is_taken_and_several_seeds_are_refused(
    tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "file").write_text("")
    assert simulate("--out", str(tmp_path)) == 2
    assert "not empty" in capsys.readouterr().err
    assert simulate("--out", str(tmp_path / "file")) == 2
    assert "--out" in capsys.readouterr().err
    assert simulate("--out", str(tmp_path / "new"), "--seeds", "2") == 2
    assert "shows one seed" in capsys.readouterr().err
