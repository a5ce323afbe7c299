"""Exit codes of runs on Spark, and signals that stop them."""

import math
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from penstock.errors import PenstockError, SignalInterrupt
from penstock.runs.execution import execute, exit_code, stop_on_signals
from penstock.runs.observer import StopRequest
from penstock.runs.result import RunResult
from penstock.runs.run_directory import finish_run
from penstock.runs.spec import SparkSpec


@pytest.mark.parametrize(
    ("ended", "lost", "code"),
    [("finished", 0, 0), ("cut", 0, 0), ("failed", 0, 1), ("finished", 1, 1), ("cut", 630, 1)],
)
def test_a_run_that_failed_or_lost_records_is_no_success(ended: str, lost: int, code: int) -> None:
    balance = {"offered": 1000, "lost": lost}
    assert exit_code(RunResult.from_json({"ended": ended, "records": balance})) == code


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_run_that_a_signal_stopped_says_which(
    number: signal.Signals, code: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(
        _prepared: object, _directory: Path, _observer: object, stop: StopRequest, *_: object
    ) -> RunResult:
        stop.is_gentle = True
        signal.raise_signal(number)
        return RunResult.from_json({"ended": "stopped", "records": {"offered": 9}})

    monkeypatch.setattr("penstock.runs.spark_run.run_on_spark", run)
    prepared: Any = SimpleNamespace(spec=SparkSpec(pipeline="images"), duration_s=120.0)
    shown: Any = View()
    outcome = execute(prepared, tmp_path / "run", shown)
    assert (outcome.code, outcome.is_stopped) == (code, True)
    assert shown.calls == ["watched", "stopping", "ended"]


def test_a_signal_that_breaks_off_the_start_is_no_error_of_spark(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(*_: object) -> RunResult:
        with suppress(SignalInterrupt):
            signal.raise_signal(signal.SIGTERM)
        raise PenstockError("Spark has ended (Py4JNetworkError)")

    monkeypatch.setattr("penstock.runs.spark_run.run_on_spark", run)
    prepared: Any = SimpleNamespace(spec=SparkSpec(pipeline="images"), duration_s=120.0)
    shown: Any = View()
    with pytest.raises(SignalInterrupt) as ended:
        execute(prepared, tmp_path / "run", shown)
    assert ended.value.number == signal.SIGTERM


@pytest.mark.parametrize(
    ("ended", "lost"), [("stopped", 630), ("failed", 0)], ids=["lost records", "failed"]
)
def test_a_signal_hides_neither_a_failure_nor_lost_records(
    ended: str, lost: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(
        _prepared: object, _directory: Path, _observer: object, stop: StopRequest, *_: object
    ) -> RunResult:
        stop.is_gentle = True
        signal.raise_signal(signal.SIGTERM)
        return RunResult.from_json({"ended": ended, "records": {"offered": 999, "lost": lost}})

    monkeypatch.setattr("penstock.runs.spark_run.run_on_spark", run)
    prepared: Any = SimpleNamespace(spec=SparkSpec(pipeline="images"), duration_s=120.0)
    shown: Any = View()
    outcome = execute(prepared, tmp_path / "run", shown)
    assert (outcome.code, outcome.is_stopped) == (1, True)


@pytest.mark.parametrize(
    ("duration_s", "calls"), [(math.inf, ["watched", "ended"]), (300.0, ["finished"])]
)
def test_only_a_run_with_an_end_is_finished_for_good(
    duration_s: float, calls: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = SparkSpec(pipeline="shop")
    data = {"ended": "finished", "records": {"offered": 9}, "spec": spec.to_json()}
    result = RunResult.from_json(data)
    finish_run(tmp_path, result)  # as --available-now leaves it
    monkeypatch.setattr("penstock.runs.spark_run.run_on_spark", lambda *_: result)
    prepared: Any = SimpleNamespace(spec=spec, duration_s=duration_s)
    shown: Any = View()
    assert execute(prepared, tmp_path, shown).code == 0
    assert shown.calls == calls


class EndedError(Exception):
    """The process would be gone."""


class View:
    """Keeps what a person sees."""

    def __init__(self) -> None:
        self.calls: list[str] = []

    @contextmanager
    def watch(self, *_: object) -> Iterator[None]:
        self.calls.append("watched")
        yield

    def show_end(self, *_: object) -> None:
        self.calls.append("ended")

    def show_finished(self, *_: object) -> None:
        self.calls.append("finished")

    def show_stopping(self) -> None:
        self.calls.append("stopping")

    def abort(self) -> None:
        self.calls.append("aborted")


def test_a_second_signal_kills_spark_and_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(code: int) -> None:
        raise EndedError(code)

    view, stop = View(), StopRequest()
    stop.is_gentle = True
    session = "penstock.engines.spark.cluster.session.kill_session"
    monkeypatch.setattr(session, lambda: view.calls.append("killed"))
    monkeypatch.setattr(os, "_exit", leave)
    shown: Any = view
    with stop_on_signals(stop, shown) as signals:
        signal.raise_signal(signal.SIGTERM)
        assert (stop.is_asked, view.calls) == (True, ["stopping"])
        with pytest.raises(EndedError, match="130"):
            signal.raise_signal(signal.SIGINT)
    assert view.calls == ["stopping", "killed", "aborted"]
    assert signals == [signal.SIGTERM]


def test_a_signal_before_records_flow_stops_at_once() -> None:
    shown: Any = View()
    with pytest.raises(SignalInterrupt) as ended, stop_on_signals(StopRequest(), shown):
        signal.raise_signal(signal.SIGTERM)
    assert ended.value.number == signal.SIGTERM
