"""`penstock lab run --master`: a grid on executors has the results of the same grid here."""

import json
from pathlib import Path

import pytest
from tests.tools.standalone_cluster import StandaloneCluster

from penstock.cli.main import main

pytestmark = [pytest.mark.spark, pytest.mark.long]
GRID = """
name = "small"
[base]
minutes = 10
[grid]
policy = ["ds2", "threshold"]
seeds = 3
"""


def results(out: Path) -> dict[str, object]:
    return {file.name: json.loads(file.read_text()) for file in (out / "results").iterdir()}


def test_a_grid_on_a_cluster_equals_the_same_grid_here(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = tmp_path / "small.toml"
    grid.write_text(GRID)
    here, there = tmp_path / "here", tmp_path / "there"
    assert main(["lab", "run", str(grid), "--out", str(here), "--jobs", "1"]) == 0
    with StandaloneCluster(tmp_path / "cluster", workers=2) as cluster:
        options = ["--master", cluster.url, "--executors", "2"]
        options += ["--conf", "spark.executor.memory=600m"]
        command = ["lab", "run", str(grid), "--out", str(there), *options]
        assert main(command) == 0
        assert cluster.executors() == 2
        capsys.readouterr()
        assert main([*command, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["new"] == 0, "the second time nothing is left to do"
    assert results(here) == results(there)
    assert len(results(there)) == 6
