"""A run becomes a picture."""

from pathlib import Path

import pytest

from penstock.control.loop import Tick
from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.port import Status
from penstock.reports.run_picture import draw_run
from penstock.runs.journal import Journal, JournalWriter, read_journal
from penstock.runs.run_directory import begin_run
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec

pytestmark = pytest.mark.slow


def test_a_run_is_drawn_with_every_operator(tmp_path: Path) -> None:
    prepared = prepare_simulation(
        SimulationSpec(query="images", workload="pulsar", engine="pulsar", minutes=5)
    )
    with begin_run(tmp_path / "run", prepared.spec.to_json(), prepared.header()) as journal:
        prepared.run(journal.write)
    target = tmp_path / "run.svg"
    draw_run(read_journal(tmp_path / "run" / "journal.jsonl"), target, "images under pulsar")
    text = target.read_text()
    for word in ("recognise", "thumbnail", "offered", "records that wait", "objective"):
        assert word in text


def tick_with(at: float, *names: str) -> Tick:
    replicas = FrozenDict(dict.fromkeys(names, 2))
    operators = {name: OperatorSnapshot(name=name, parallelism=2, queue=7.0) for name in names}
    return Tick(
        at=at,
        status=Status(at=at, requested=replicas, running=replicas),
        snapshot=Snapshot(at=at, operators=FrozenDict(operators)),
    )


def test_operators_that_came_and_went_are_drawn(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path, {}) as journal:
        journal.write(tick_with(15.0, "parse", "dropped"))
    with JournalWriter.resume(path, {}) as journal:
        journal.write(tick_with(30.0, "parse", "enrich"))
    found: Journal = read_journal(path)
    draw_run(found, tmp_path / "run.svg", "a resumed run")
    text = (tmp_path / "run.svg").read_text()
    for word in ("parse", "dropped", "enrich"):
        assert word in text


def test_what_was_never_measured_has_no_panel(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with JournalWriter(path, {"objective_s": 5.0}) as journal:
        for at in (15.0, 30.0):
            journal.write(tick_with(at, "parse"))
    draw_run(read_journal(path), tmp_path / "run.svg", "a run that let nothing through")
    text = (tmp_path / "run.svg").read_text()
    assert "records that wait" in text
    assert "latency" not in text
