"""A run becomes a picture."""

from pathlib import Path

import pytest

from penstock.cli.drawing import draw_run
from penstock.control.journal import read_journal
from penstock.control.rundir import begin_run
from penstock.lab.simulation import RunSpec, prepare

pytestmark = pytest.mark.slow


def test_a_run_is_drawn_with_every_operator(tmp_path: Path) -> None:
    prepared = prepare(RunSpec(query="images", workload="pulsar", engine="pulsar", minutes=5))
    with begin_run(tmp_path / "run", prepared.spec.to_json(), prepared.header()) as journal:
        prepared.run(journal.write)
    target = tmp_path / "run.svg"
    draw_run(read_journal(tmp_path / "run" / "journal.jsonl"), target, "images under pulsar")
    text = target.read_text()
    for word in ("recognise", "thumbnail", "offered", "records that wait", "objective"):
        assert word in text
