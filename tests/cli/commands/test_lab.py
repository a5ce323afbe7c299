"""The commands `penstock lab run` and `penstock lab compare`."""

import csv
import json
import shlex
from pathlib import Path

import pytest

from penstock.cli.main import main

Capture = pytest.CaptureFixture[str]
GRID = """
name = "small"
[base]
minutes = 4
initial = 4
[grid]
policy = ["static", "hpa-cpu"]
seeds = 2
"""


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory in which a small grid has run."""
    folder = tmp_path_factory.mktemp("lab")
    (folder / "small.toml").write_text(GRID)
    out = folder / "out"
    assert main(["lab", "run", str(folder / "small.toml"), "--out", str(out), "--jobs", "1"]) == 0
    return out


def test_a_grid_runs_once_and_says_where_it_is(ran: Path, capsys: Capture) -> None:
    assert len(list((ran / "results").iterdir())) == 4
    argv = ["lab", "run", str(ran / "grid.toml"), "--out", str(ran)]
    assert main(argv) == 0
    out, err = capsys.readouterr()
    assert out == (
        f"small: 2 cells, 4 runs, 0 of them new, in {ran}\ncompare: penstock lab compare {ran}\n"
    )
    assert err == "small: 4 of 4 exist already\n"
    assert main([*argv, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["new"]) == (4, 0)
    assert [cell["cell"] for cell in told["cells"]] == ["q1-cosine-static", "q1-cosine-hpa-cpu"]


def test_the_place_is_named_after_the_grid(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.toml").write_text("[base]\nminutes = 1")
    assert main(["lab", "run", "one.toml"]) == 0
    assert Path("runs/one/results/q1-cosine-ds2-1066.json").is_file()


def test_people_get_a_table_and_rankings(ran: Path, capsys: Capture) -> None:
    assert main(["lab", "compare", str(ran)]) == 0
    out, err = capsys.readouterr()
    lines = out.splitlines()
    assert lines[0] == "q1, cosine" and err == ""
    assert lines[2].split() == [
        "replicas", "replicas", "latency", "latency", "age", "rescales", "dropped", "SLO",
        "replica",
    ]  # fmt: skip
    assert lines[4].startswith("static *") and " 12.0 " in lines[4] and " 0 / 1 " in lines[4]
    assert any(line.startswith("replica hours: static ") for line in lines)
    assert "over 2 paired seeds" in out


def test_json_has_every_figure_and_pair(ran: Path, capsys: Capture) -> None:
    assert main(["lab", "compare", str(ran), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (group,) = told["groups"]
    assert group["seeds"] == [1066, 1067]
    static = group["cells"][0]
    assert static["figures"]["replica_hours"] == {"mean": 0.8, "low": 0.8, "high": 0.8}
    (pair,) = group["pairs"]
    assert (pair["first"], pair["second"]) == ("static", "hpa-cpu")
    assert set(pair["differences"]) == {"replica_hours", "latency_avg_s"}


def test_files_hold_the_same_figures(ran: Path, tmp_path: Path, capsys: Capture) -> None:
    files = {kind: tmp_path / f"a.{kind}" for kind in ("markdown", "csv", "html")}
    options = [part for kind, file in files.items() for part in (f"--{kind}", str(file))]
    assert main(["lab", "compare", str(ran), *options]) == 0
    assert capsys.readouterr().err.count("wrote ") == 3
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    (hours,) = (r for r in rows if (r["cell"], r["figure"]) == ("static", "replica_hours"))
    assert (hours["mean"], hours["group"], hours["seeds"]) == ("0.8", "q1, cosine", "2")
    document, page = files["markdown"].read_text(), files["html"].read_text()
    assert "| static \\* | 12.0 | 12.0 |" in document and "Pairwise differences" in document
    assert "<svg" in page and "<td>12.0</td>" in page and "<!-- static -->" in page


def test_hindsight_is_a_column_more(ran: Path, capsys: Capture) -> None:
    assert main(["lab", "compare", str(ran), "--hindsight", "--jobs", "1"]) == 0
    assert "hindsight" in capsys.readouterr().out.splitlines()[3]
    assert len(list((ran / "hindsight").iterdir())) == 2


def test_what_is_missing_is_said(ran: Path, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "results").mkdir()
    (tmp_path / "grid.toml").write_text(GRID)
    assert main(["lab", "compare", str(tmp_path)]) == 2
    assert "there are no results" in capsys.readouterr().err
    name = "q1-cosine-static-1066.json"
    (tmp_path / "results" / name).write_bytes((ran / "results" / name).read_bytes())
    document = tmp_path / "results.md"
    assert main(["lab", "compare", str(tmp_path), "--markdown", str(document)]) == 0
    out, err = capsys.readouterr()
    assert err.startswith("3 runs are missing; penstock lab run ")
    assert "3 of 4 runs are missing." in document.read_text()
    assert "one seed (1066): no intervals" in out


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["run", "none.toml"], "error: none.toml: there is no such file\n"),
        (["run", "bad.toml"], "error: bad.toml, cell q1-cosine-ds3: policy: unknown policy 'ds3'"),
        (["run", "good.toml", "--jobs", "0"], "error: --jobs: must be at least 1, got 0\n"),
        (["run", "good.toml", "--out", "bad.toml"], "error: --out: cannot be created: "),
        (["compare", "."], "error: DIR: there is no grid.toml in '.'"),
    ],
)
def test_mistakes_are_answered_before_anything_runs(
    argv: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: Capture,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text("[grid]\npolicy = ['ds2', 'ds3']")
    Path("good.toml").write_text("[base]\nminutes = 1")
    assert main(["lab", *argv]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(expected) and captured.out == ""
    assert not Path("runs").exists()


def test_a_load_without_randomness_is_one_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "load.csv").write_text("time,rate\n0,900000\n60,1200000\n120,900000\n")
    grid = tmp_path / "trace.toml"
    grid.write_text(
        f'[base]\nminutes = 2\nworkload = "trace(file={tmp_path}/load.csv)"\n'
        '[grid]\npolicy = ["ds2", "static-peak"]\nseeds = 5\n'
    )
    out = str(tmp_path / "out")
    assert main(["lab", "run", str(grid), "--out", out, "--jobs", "1"]) == 0
    capsys.readouterr()
    assert main(["lab", "compare", out]) == 0
    told = capsys.readouterr().out
    assert "deterministic: all seeds gave the same results" in told
    assert "%" not in told.replace("95 %", "")
    assert "Deterministic: all seeds" in told and "One seed" not in told
    assert main(["lab", "compare", out, "--json"]) == 0
    (group,) = json.loads(capsys.readouterr().out)["groups"]
    assert group["deterministic"] and len(group["seeds"]) == 1


def test_a_policy_is_scored_on_its_objective(ran: Path, tmp_path: Path, capsys: Capture) -> None:
    page = tmp_path / "score.md"
    argv = ["lab", "objective", str(ran), "--policy", "hpa-cpu", "--tuned", "static", "--jobs", "1"]
    assert main([*argv, "--markdown", str(page)]) == 0
    out, _ = capsys.readouterr()
    for text in (out, page.read_text()):
        assert "cost / hindsight, engines with a pause" in text
        assert "rescales / those of static" in text
    assert f"Made by `penstock {shlex.join(argv[:-2])} --markdown {page}`." in page.read_text()
    assert main([*argv, "--json"]) == 0
    (cell,) = json.loads(capsys.readouterr().out)["cells"]
    assert cell["has_pause"] and cell["tuned"] in (None, "static")
    assert main([*argv[:3], "--policy", "hpa-cup"]) == 2
    assert "did you mean 'hpa-cpu'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--executors", "2"], "--executors: needs a cluster"),
        (["--conf", "spark.executor.cores=2"], "--conf: needs a cluster"),
        (["--master", "spark://one:7077", "--jobs", "2"], "--jobs: is for this machine"),
        (["--master", "spark://one:7077"], "--executors: is needed with --master"),
        (["--master", "nowhere", "--executors", "2"], "--master: cannot be read"),
    ],
)
def test_options_of_a_cluster_that_do_not_fit(
    tmp_path: Path, capsys: Capture, options: list[str], problem: str
) -> None:
    (tmp_path / "small.toml").write_text(GRID)
    command = ["lab", "run", str(tmp_path / "small.toml"), "--out", str(tmp_path / "out")]
    assert main([*command, *options]) == 2
    assert problem in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_runs_on_spark_are_not_spread_over_a_cluster(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "spark.toml").write_text('on = "spark"\n[base]\nquery = "images"\n')
    command = ["lab", "run", str(tmp_path / "spark.toml"), "--out", str(tmp_path / "out")]
    assert main([*command, "--master", "spark://one:7077", "--executors", "2"]) == 2
    assert "--master: spreads simulated runs" in capsys.readouterr().err
