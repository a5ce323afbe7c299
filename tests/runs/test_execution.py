"""Exit codes of runs on Spark, and signals that stop them."""

import os
import signal
from typing import Any

import pytest

from penstock.runs.execution import exit_code, stop_on_signals
from penstock.runs.observer import StopRequest
from penstock.runs.result import RunResult


@pytest.mark.parametrize(
    ("ended", "lost", "code"),
    [("finished", 0, 0), ("cut", 0, 0), ("failed", 0, 1), ("finished", 1, 1), ("cut", 630, 1)],
)
def test_a_run_that_failed_or_lost_records_is_no_success(ended: str, lost: int, code: int) -> None:
    balance = {"offered": 1000, "lost": lost}
    assert exit_code(RunResult.from_json({"ended": ended, "records": balance})) == code


class EndedError(Exception):
    """The process would be gone."""


class View:
    """Keeps what a person sees."""

    def __init__(self) -> None:
        self.calls: list[str] = []

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
    with pytest.raises(KeyboardInterrupt), stop_on_signals(StopRequest(), shown):
        signal.raise_signal(signal.SIGTERM)
