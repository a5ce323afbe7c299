"""The live view, the text and the picture of a process run."""

import io
import re
from pathlib import Path
from typing import Any

import pytest

from penstock.decentralized.processes.node_action import NodeAction
from penstock.decentralized.processes.record_ledger import RecordLedger
from penstock.decentralized.processes.run_monitor import OperatorSample, RunSample
from penstock.decentralized.processes.run_result import ProcessRunResult
from penstock.decentralized.processes.run_spec import ProcessRunSpec
from penstock.decentralized.processes.simulator_figures import ScalingFigures
from penstock.reports.process_run_picture import draw_process_run
from penstock.reports.process_run_text import report
from penstock.reports.process_view import ProcessView, plain_line

SPEC = ProcessRunSpec(operators=2, min_actions=0)


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def sample(at_s: float, active: int, starting: int = 0, stopping: int = 0) -> RunSample:
    operators = tuple(
        OperatorSample(
            name=name,
            active=active,
            starting=starting,
            stopping=stopping,
            load=17.5 * active,
            queue=3,
            ideal=active,
        )
        for name in ("parse", "count")
    )
    return RunSample(
        at_s=at_s,
        is_loaded=True,
        offered=17.5 * active,
        operators=operators,
        messages=12,
        processes=9,
        sent=1200,
        delivered=1190,
        actions=7,
    )


def result(**changes: Any) -> ProcessRunResult:
    ledger = RecordLedger(SPEC.names[1:])
    ledger.add_sent(range(100))
    for name in SPEC.names[1:]:
        ledger.add_processed(name, range(100))
    action = NodeAction(
        node="parse-1",
        operator="parse",
        kind="duplication",
        at_s=0.5,
        took_s=0.1,
        copies=2,
        neighbours=3,
    )
    fields: dict[str, Any] = {
        "spec": SPEC,
        "seconds": 3.0,
        "sent": 100,
        "accounts": tuple(ledger.accounts()),
        "actions": (action,),
        "messages": {"Duplication": 3, "DuplicationAck": 3, "StartSignal": 2},
        "samples": (sample(1.0, 2), sample(2.0, 4), sample(3.0, 3)),
        "peak_processes": 12,
        "started_processes": 14,
        "latencies_s": (0.25, 0.5),
        "has_right_counts": True,
        "wrong_views": (),
        "strangers": 0,
    }
    return ProcessRunResult(**fields | changes)


def test_the_view_draws_every_instance_and_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal()
    with ProcessView(SPEC, stream) as view:
        view.show(sample(15.0, 3, starting=2, stopping=1))
    text = stream.getvalue()
    assert "[##########..........] 0:15 of 0:30" in text
    assert "source ─▶ parse ─▶ count ─▶ sink" in text
    assert text.count("●●●○○◌") == 2
    assert "\x1b[1m" in text
    assert text.endswith("\x1b[?25h")


def test_the_view_has_no_styles_if_nobody_wants_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    stream = Terminal()
    ProcessView(SPEC, stream).show(sample(1.0, 1))
    assert "\x1b[1m" not in stream.getvalue()


def test_the_view_never_exceeds_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"TERM": "xterm", "COLUMNS": "30", "LINES": "6"}.items():
        monkeypatch.setenv(name, value)
    stream = Terminal()
    ProcessView(SPEC, stream).show(sample(15.0, 40))
    lines = re.sub(r"\x1b\[[0-9?]*[A-Za-z]|\r", "", stream.getvalue()).splitlines()
    assert len(lines) < 6
    assert max(map(len, lines)) < 30


def test_elsewhere_a_sample_is_a_line() -> None:
    stream = io.StringIO()
    with ProcessView(SPEC, stream) as view:
        view.show(sample(15.0, 3, stopping=1))
    assert stream.getvalue() == f"{plain_line(sample(15.0, 3, stopping=1))}\n"
    assert "parse 3-1 (queue 3)" in stream.getvalue()


def test_the_text_states_the_figures() -> None:
    text = "\n".join(report(result()))
    assert "Every operator has processed every record exactly once." in text
    assert "1 duplications, 0 deletions" in text
    assert "8; 8 by the paper's formula" in text
    assert "simulator" not in text
    assert re.search(r"parse +100 +0 +0 +2 +3\.0 +4", text)
    assert "strangers" not in text


def test_the_figures_of_the_simulator_stand_beside_those_of_the_run() -> None:
    simulated = ScalingFigures(
        actions=4.5,
        nodes_started=3,
        messages=45,
        accuracy_mean=1.25,
        accuracy_p05=0.5,
        accuracy_p95=2,
        ideal_throughput=0.9,
    )
    text = "\n".join(report(result(), simulated))
    # three samples of 12 messages; the last one has seen seven actions, of which one is known
    assert re.search(r"scaling actions +1 +4\.5\n", text)
    assert re.search(r"messages of the protocol +36 +45\n", text)
    assert re.search(r"messages per action +36\.0 +10\.0\n", text)
    assert re.search(r"accuracy: instances / ideal +1\.00 +1\.25\n", text)
    assert re.search(r"can take +100\.0% +90\.0%\n", text)


def test_the_text_names_problems_and_strangers() -> None:
    text = "\n".join(report(result(wrong_views=("parse-2",), strangers=2)))
    assert "PROBLEM: wrong neighbours: parse-2" in text
    assert "2 connections without the token were refused" in text
    assert "exactly once." not in text


@pytest.mark.slow
def test_the_picture_has_every_operator_over_seconds(tmp_path: Path) -> None:
    path = tmp_path / "run.svg"
    draw_process_run(result(), path)
    text = path.read_text()
    # matplotlib writes the text of each label as a comment
    for label in ("parse", "count", "ideal", "seconds", "messages/s"):
        assert f"<!-- {label} -->" in text
