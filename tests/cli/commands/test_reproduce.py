"""`penstock reproduce`: where it finds the published experiments."""

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
    folder = experiments.find_experiments()
    assert folder == Path(__file__).parents[3] / "experiments"
    assert all((folder / f"{paper}.toml").is_file() for paper in experiments.PAPERS)


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
