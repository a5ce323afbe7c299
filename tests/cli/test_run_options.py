"""The page that a run on Spark leaves behind, and the view that serves metrics."""

import io
from argparse import Namespace
from pathlib import Path

import pytest

from penstock.cli.run_options import _view, _write_report
from penstock.errors import InputError
from penstock.lab.simulation import run_simulation
from penstock.prometheus.metrics_server import MeteredView
from penstock.reports.run_view import ScreenView
from penstock.runs.execution import ExecutedRuns, RunOutcome
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec


@pytest.fixture
def runs(tmp_path: Path) -> ExecutedRuns:
    """A run that has ended, in a directory of its own."""
    spec = SimulationSpec(minutes=3)
    result, _ = run_simulation(prepare_simulation(spec), tmp_path / "run")
    return ExecutedRuns({"": RunOutcome(result, 0)}, tmp_path / "run")


def test_a_run_ends_with_the_path_of_its_report(runs: ExecutedRuns) -> None:
    stream = io.StringIO()
    _write_report(runs, stream)
    path = runs.directory / "report.html"
    assert stream.getvalue() == f"report: {path}\n" and path.read_text().startswith(
        "<!doctype html>"
    )


def test_a_long_run_only_names_the_command(runs: ExecutedRuns) -> None:
    (runs.directory / "journal.000001.jsonl").write_bytes(
        (runs.directory / "journal.jsonl").read_bytes()
    )
    stream = io.StringIO()
    _write_report(runs, stream)
    assert stream.getvalue() == f"penstock report {runs.directory} writes a page about it\n"


def test_a_report_that_fails_is_a_warning(
    runs: ExecutedRuns, capsys: pytest.CaptureFixture[str]
) -> None:
    (runs.directory / "run.toml").write_text("version = 9")
    _write_report(runs, io.StringIO())
    assert "warning: no report" in capsys.readouterr().err


def test_without_jinja2_there_is_no_report(
    runs: ExecutedRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.cli.run_options.find_spec", lambda _name: None)
    stream = io.StringIO()
    _write_report(runs, stream)
    assert stream.getvalue() == ""


def test_metrics_are_served_only_if_asked_for() -> None:
    plain = Namespace(plain=True, metrics_port=None, metrics_host="127.0.0.1")
    assert isinstance(_view(plain), ScreenView)
    assert isinstance(_view(Namespace(**{**vars(plain), "metrics_port": 0})), MeteredView)


def test_a_missing_package_is_named_before_the_run_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("penstock.extras.find_spec", lambda _name: None)
    with pytest.raises(InputError, match=r"needs prometheus-client: pip install '.\[dash"):
        _view(Namespace(plain=True, metrics_port=0, metrics_host="127.0.0.1"))
