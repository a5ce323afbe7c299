"""The command `penstock reproduce`, on a small experiments file."""

import json
from pathlib import Path

import pytest

from penstock.cli.main import main
from penstock.lab.papers import experiments

Capture = pytest.CaptureFixture[str]

PAPER = """
paper = "pulsar"
title = "A small paper"
source = "here"
seeds = 1
base = { query = "q1", minutes = 5, workload = "cosine" }
cells.ds2 = { policy = "ds2" }
cells.static = { policy = "static" }

[[claims]]
id = "c1"
where = "Section 1"
says = "both process records"
measure = "processed_records"
order = ["ds2 >= static"]
"""


def test_experiments_are_found_beside_the_source() -> None:
    folder = Path(__file__).parents[3] / "experiments"
    files = [experiments.find_experiments(paper) for paper in experiments.PAPERS]
    assert files == [folder / f"{paper}.toml" for paper in experiments.PAPERS]


def test_another_folder_is_taken(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "pulsar.toml").write_text(PAPER)
    command = ["reproduce", "pulsar", "--experiments", str(tmp_path), "--jobs", "1", "--json"]
    assert main([*command, "--out", str(tmp_path / "out")]) == 0
    (verdict,) = json.loads(capsys.readouterr().out)
    assert verdict["id"] == "c1"


@pytest.mark.parametrize("given", [True, False])
def test_a_folder_without_experiments_is_refused(
    given: bool, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an installed package has no source beside it."""
    inside = tmp_path / "site-packages" / "penstock" / "lab" / "papers" / "experiments.py"
    monkeypatch.setattr(experiments, "__file__", str(inside))
    options = ["--experiments", str(tmp_path)] if given else []
    assert main(["reproduce", "pulsar", *options, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert "there is no pulsar.toml" in told and "--experiments DIR" in told


#: One true claim, one false claim and one that nothing here decides.
EXPERIMENTS = """
paper = "thesis"
title = "A small paper"
source = "nowhere, 2026"
seeds = 3

[base]
engine = "flink"
query = "q1"
workload = "cosine"
minutes = 2

[cells.few]
policy = "static"
initial = 1

[cells.many]
policy = "static"
initial = 4

[[claims]]
id = "S-1"
where = "table 1"
says = "Four replicas each are more than one."
measure = "replicas.avg"
order = ["many > few"]
published = "12 3"
why = "Replicas are counted."

[[claims]]
id = "S-2"
where = "table 1"
says = "One replica each is more than four."
measure = "replicas.avg"
order = ["few > many"]

[[claims]]
id = "S-3"
where = "section 2"
says = "Operators are happy."
undecidable = "nothing measures it"

[[figures]]
id = "figure-1"
title = "Replicas over time"
cells = ["few", "many"]
panels = ["offered", "replicas"]

[printed]
columns = ["replicas.avg", "replicas.max"]
main = ["replicas.avg"]

[printed.groups."table 1"]
few = [3, 3]
many = [12, 12]
"""


@pytest.fixture
def small_paper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace the published experiments by a small file."""
    (tmp_path / "thesis.toml").write_text(EXPERIMENTS)
    monkeypatch.chdir(tmp_path)


def reproduce(*options: str) -> int:
    return main(
        ["reproduce", "thesis", "--seeds", "2", "--jobs", "1", "--experiments", ".", *options]
    )


def test_every_claim_gets_a_verdict(small_paper: None, capsys: Capture) -> None:
    assert reproduce("--json") == 0
    verdicts = json.loads(capsys.readouterr().out)
    answers = {verdict["id"]: verdict["answer"] for verdict in verdicts}
    assert list(answers) == ["S-1", "S-2", "S-3"] and len(set(answers.values())) == 3
    assert verdicts[0]["published"] == "12 3" and verdicts[0]["why"] == "Replicas are counted."


def test_results_are_stored_and_reused(small_paper: None, tmp_path: Path, capsys: Capture) -> None:
    assert reproduce() == 0
    out, _ = capsys.readouterr()
    assert out.startswith("A small paper (nowhere, 2026), 2 seeds\n") and "3 claims: " in out
    assert len(list((tmp_path / "runs/reproduce").glob("*/results/*.json"))) == 4
    assert reproduce() == 0
    again, err = capsys.readouterr()
    assert again == out and "4 of 4 exist already" in err


def test_the_document_and_the_page_have_claims_tables_and_figures(
    small_paper: None, tmp_path: Path, capsys: Capture
) -> None:
    assert reproduce("--markdown", "new/claims.md", "--html", "new/claims.html") == 0
    assert "wrote new/claims.md" in capsys.readouterr().err
    document = (tmp_path / "new/claims.md").read_text()
    assert "Made by `penstock reproduce thesis`" in document and "| S-2 |" in document
    assert "| table 1 | few |" in document
    assert "1 of 1 for replicas.avg, 2 of 2 for all columns" in document
    page = (tmp_path / "new/claims.html").read_text()
    assert "<svg" in page and "Replicas over time" in page


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--seeds", "0"], "--seeds: must be at least 1, got 0"),
        (["--jobs", "0"], "--jobs: must be at least 1, got 0"),
        (["--out", "thesis.toml"], "--out: cannot be created: File exists"),
    ],
)
def test_mistakes_are_reported_before_anything_runs(
    options: list[str], problem: str, small_paper: None, capsys: Capture
) -> None:
    assert reproduce(*options) == 2
    assert capsys.readouterr().err.startswith(f"error: {problem}")
