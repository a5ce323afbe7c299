"""`penstock lab` on grids of runs on Spark, which a function of ours stands in for."""

import csv
import json
import shutil
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import main
from penstock.errors import PenstockError
from penstock.lab.grid.grid import BACKENDS
from penstock.lab.grid.spark_backend import SparkBackend
from penstock.runs.spec import SparkSpec

Capture = pytest.CaptureFixture[str]
Run = Callable[[SparkSpec, Path], dict[str, Any]]
GRID = """
on = "spark"
name = "real-{name}"
note = "Rates are {scale}, and operators wait."
[base]
query = "words"
workload = "dns"
speed_up = 30
[grid]
policy = ["static", "ds2"]
"""
RECORDED = Path(__file__).parents[1] / "recorded"
COST = {"static": 4.0, "ds2": 3.0}


def figures(spec: SparkSpec, place: Path) -> dict[str, Any]:
    """What a run on Spark tells, as far as it is compared."""
    cost = COST[spec.policy]
    place.mkdir(parents=True)
    return {
        "spec": spec.to_json(),
        "ended": "finished",
        "replicas": {"avg": cost, "max": 2 * cost},
        "latency_s": {"avg": 8 - cost, "p50": 2.5, "p95": 9.0},
        "age_s": {"avg": 1.0, "p95": 2.0},
        "rescales": 4,
        "rescales_possible": 28,
        "offered_records": 200,
        "dropped_records": 0,
        "slo": {"objective_s": 2.0, "violated_share": 0.1},
        "replica_hours": cost,
    }


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Let another function run the specs."""

    def use(run: Run) -> None:
        monkeypatch.setitem(BACKENDS, "spark", SparkBackend(run))

    use(figures)
    return use


def made(folder: Path, name: str, scale: str = "1/10") -> Path:
    """Run a small grid."""
    spec = folder / f"{name}.toml"
    spec.write_text(GRID.format(name=name, scale=scale))
    assert main(["lab", "run", str(spec), "--out", str(folder / name)]) == 0
    return folder / name


@pytest.mark.usefixtures("bench")
def test_a_grid_runs_once_each_run_in_its_directory(tmp_path: Path, capsys: Capture) -> None:
    out = made(tmp_path, "a")
    assert sorted(place.name for place in (out / "runs").iterdir()) == [
        "words-dns-ds2-1066", "words-dns-static-1066",
    ]  # fmt: skip
    assert capsys.readouterr().out == (
        f"real-a: 2 cells, 2 runs, 2 of them new, in {out}\ncompare: penstock lab compare {out}\n"
    )
    assert main(["lab", "run", str(tmp_path / "a.toml"), "--out", str(out), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["runs"], told["new"], told["failed"]) == (2, 0, [])


def test_one_that_fails_is_told_and_tried_again(
    tmp_path: Path, bench: Callable[[Run], None], capsys: Capture
) -> None:
    def crash(spec: SparkSpec, place: Path) -> dict[str, Any]:
        if spec.policy == "static":
            raise PenstockError("the JVM has gone")
        return figures(spec, place)

    bench(crash)
    (tmp_path / "a.toml").write_text(GRID.format(name="a", scale="1"))
    argv = ["lab", "run", str(tmp_path / "a.toml"), "--out", str(tmp_path / "a")]
    assert main(argv) == 1
    out, err = capsys.readouterr()
    assert "error: run words-dns-static-1066: the JVM has gone\n" in err
    assert "2 runs, 1 of them new" in out and "1 failed: the same command runs" in out
    bench(figures)
    assert main(argv) == 0


def test_an_interrupt_keeps_what_is_done(
    tmp_path: Path, bench: Callable[[Run], None], capsys: Capture
) -> None:
    def interrupted(spec: SparkSpec, place: Path) -> dict[str, Any]:
        if spec.policy == "ds2":
            raise KeyboardInterrupt
        return figures(spec, place)

    bench(interrupted)
    (tmp_path / "a.toml").write_text(GRID.format(name="a", scale="1"))
    argv = ["lab", "run", str(tmp_path / "a.toml"), "--out", str(tmp_path / "a")]
    assert main(argv) == 130
    assert "interrupted; the same command resumes" in capsys.readouterr().err
    bench(figures)
    assert main(argv) == 0
    assert "2 runs, 1 of them new" in capsys.readouterr().out


@pytest.mark.usefixtures("bench")
def test_one_seed_has_no_intervals_and_is_compared_all_the_same(
    tmp_path: Path, capsys: Capture
) -> None:
    out = made(tmp_path, "a")
    capsys.readouterr()
    assert main(["lab", "compare", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("Rates are 1/10, and operators wait.\n\nwords, dns\n")
    assert "one seed (1066): no intervals" in shown
    assert "replica hours: ds2 ~ static\nlatency avg (s): static ~ ds2\n" in shown
    assert "certainty of the order is unknown" in shown and "%" not in shown and "±" not in shown


@pytest.mark.usefixtures("bench")
def test_many_directories_are_one_document_that_says_how_it_was_made(
    tmp_path: Path, capsys: Capture
) -> None:
    places = [str(made(tmp_path, name)) for name in ("a", "b")]
    places.append(str(made(tmp_path, "c", "1/20")))
    document, page, sheet = (tmp_path / f"spark-results.{kind}" for kind in ("md", "html", "csv"))
    files = ["--markdown", str(document), "--html", str(page), "--csv", str(sheet)]
    capsys.readouterr()
    assert main(["lab", "compare", *places, *files]) == 0
    shown = capsys.readouterr().out
    names = [line for line in shown.splitlines() if line.startswith("real-")]
    assert names[:3] == ["real-a", "real-b", "real-c"]
    assert names[3:] == [f"real-{name}: words, dns  4.0 / 4.0  3.0 / 5.0" for name in "abc"]
    text = document.read_text()
    command = f"penstock lab compare {' '.join(places)} --markdown {document}"
    assert text.startswith(f"# spark-results\n\nMade by `{command}`.\n\n")
    above, *sections = text.split("\n## ")
    assert "real-a, real-b: Rates are 1/10, and operators wait." in above
    assert "real-c: Rates are 1/20, and operators wait." in above
    assert "Each cell: replica hours / latency avg (s)." in above
    assert "| real-c: words, dns | 4.0 / 4.0 | 3.0 / 5.0 |" in above
    assert text.count("certainty of the order is unknown") == 1
    assert [section.partition("\n")[0] for section in sections] == ["real-a", "real-b", "real-c"]
    for section in sections:
        assert section.count("\n### words, dns\n") == 1
        assert "Pairwise differences" not in section, "one seed tells no certainty"
    assert "<h2>real-b: words, dns</h2>" in page.read_text()
    rows = list(csv.DictReader(sheet.read_text().splitlines()))
    assert {row["grid"] for row in rows} == {"real-a", "real-b", "real-c"}


@pytest.mark.usefixtures("bench")
def test_json_of_many_directories_is_a_list_of_what_each_has(
    tmp_path: Path, capsys: Capture
) -> None:
    places = [str(made(tmp_path, name)) for name in ("a", "b")]
    capsys.readouterr()
    assert main(["lab", "compare", *places, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)["grids"]
    assert [grid["name"] for grid in told] == ["real-a", "real-b"]
    assert main(["lab", "compare", places[1], "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == told[1]
    assert told[1]["note"] == tomllib.loads((Path(places[1]) / "grid.toml").read_text())["note"]


@pytest.mark.usefixtures("bench")
def test_what_only_a_simulator_can_is_refused(tmp_path: Path, capsys: Capture) -> None:
    out = made(tmp_path, "a")
    capsys.readouterr()
    assert main(["lab", "compare", str(out), "--hindsight"]) == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: --hindsight: {str(out)!r} contains runs on Spark\nhint: ")
    for jobs in ("2", "0"):
        again = tmp_path / "again"
        argv = ["lab", "run", str(tmp_path / "a.toml"), "--out", str(again), "--jobs", jobs]
        assert main(argv) == 2 and not again.exists()
        assert capsys.readouterr().err.startswith("error: --jobs: ")


def with_journal(spec: SparkSpec, place: Path) -> dict[str, Any]:
    """A run that keeps its journal."""
    found = figures(spec, place)
    shutil.copy(RECORDED / "run-spark-v1.toml", place / "run.toml")
    shutil.copy(RECORDED / "journal-spark-v1.jsonl", place / "journal.jsonl")
    return found


def test_changes_and_a_picture_come_from_the_journals(
    bench: Callable[[Run], None],
    tmp_path: Path,
    capsys: Capture,
) -> None:
    bench(with_journal)
    file, out, picture = tmp_path / "g.toml", tmp_path / "g", tmp_path / "g.svg"
    file.write_text(GRID.format(name="g", scale=1))
    assert main(["lab", "run", str(file), "--out", str(out)]) == 0
    capsys.readouterr()
    assert main(["lab", "compare", str(out)]) == 0
    assert "reversals" not in capsys.readouterr().out
    assert main(["lab", "compare", str(out), "--changes", "--picture", str(picture)]) == 0
    text = capsys.readouterr().out
    assert "reversals" in text
    assert "a reversal is a change against the direction" in text
    drawn = picture.read_text()
    assert "static" in drawn or "<text" not in drawn
    shutil.rmtree(out / "runs")
    assert main(["lab", "compare", str(out), "--changes"]) == 2
    assert "there is no journal" in capsys.readouterr().err
    assert main(["lab", "compare", str(out), "--picture", str(picture)]) == 2
    assert "--picture" in capsys.readouterr().err
