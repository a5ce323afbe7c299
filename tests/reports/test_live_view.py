"""The live view, drawn from ticks that were made up, and the screen that it is drawn on."""

import io
import re
from typing import Any

import pytest
from tests.builders import op, snap

from penstock.control.loop import Tick
from penstock.core.decision import Decision, Target
from penstock.core.reasons import Reason
from penstock.core.snapshot import Snapshot
from penstock.engines.event_json import event_from_json
from penstock.engines.events import BehindEvent
from penstock.engines.port import IngestStatus, Status
from penstock.reports.live_view import LiveView, decision_lines, dots, event_lines, plain_line
from penstock.reports.screen import STOPPING, Screen
from penstock.runs.observer import RunProgress, StopRequest


def seen(queue: float = 0.0, running: int = 2, requested: int = 2, **extra: Any) -> Snapshot:
    """Two operators, of which the second is looked at."""
    first = op("resize", 1, queue=0.0, requested=1)
    second = op(
        "recognise",
        running,
        upstream=("resize",),
        queue=queue,
        requested=requested,
        input_rate=7.25,
        extra=extra,
    )
    return snap(first, second, at=42.0, offered=8.0)


def sight(snapshot: Snapshot | None = None, **fields: Any) -> RunProgress:
    rate = 8.0 if snapshot else None
    shown = {"second": 30.0, "duration_s": 120.0, "snapshot": snapshot, "offered_rate": rate}
    return RunProgress(**(shown | fields))


def tick(*changes: tuple[str, int, int], applied: bool = True, error: str = "") -> Tick:
    targets = {
        name: Target(current, wanted, Reason.RATE_ABOVE_CAPACITY)
        for name, current, wanted in changes
    }
    replicas = {"resize": 1, "recognise": 2}
    plan = {name: wanted for name, _, wanted in changes} if applied else {}
    return Tick(
        at=42.0,
        status=Status(at=42.0, requested=replicas | plan, running=replicas),
        decision=Decision(42.0, "ds2", targets),
        applied=applied,
        error=error,
        plan=plan,
    )


def drawn(live: LiveView, width: int = 120, height: int = 40) -> str:
    return "\n".join(live.lines(width, height))


def test_every_operator_is_a_row_with_its_measures() -> None:
    live = LiveView("images, ds2", objective_s=5.0)
    for queue in (0.0, 5.0, 12.0):
        live.show_progress(sight(seen(queue, 2, 4, latency_p50_s=1.234, latency_p95_s=3.5)))
    text = drawn(live)
    row = next(line for line in text.splitlines() if "recognise" in line)
    assert re.search(r"7\.2\s+12\s+▁▄█\s+●●○○ 2 -> 4\s+1\.23 s\s+3\.50 s", row)
    assert "resize" in text
    assert "8.0/s offered" in text
    assert "objective 5 s" in text


def test_both_levels_are_shown() -> None:
    live = LiveView("images")
    live.show_progress(sight(seen(), executors=(1, 1)))
    assert "3 replicas  1 executors" in drawn(live)
    live.show_progress(sight(seen(), executors=(1, 3)))
    assert "1 -> 3 executors" in drawn(live)
    status = Status(at=42.0, requested={}, running={}, executors=1, executors_requested=3)
    assert plain_line(Tick(at=42.0, status=status), None).endswith("executors 1->3")


def test_why_executors_come_and_go_is_told() -> None:
    numbers = [
        {"alive": 1, "asked": 3, "before": 1, "why": "more-replicas"},
        {"alive": 3, "asked": 3, "after_s": 4.5},
        {"alive": 2, "asked": 3, "why": "lost"},
    ]
    events = tuple(event_from_json({"at": 40.0, "kind": "executors", **each}) for each in numbers)
    status = Status(at=42.0, requested={}, running={}, events=events)
    asked, there, lost = event_lines(Tick(at=42.0, status=status))
    assert "executors 1 -> 3" in asked
    assert "more-replicas: the replicas need more room" in asked
    assert there.split(maxsplit=1)[1] == "executors now 3       4.5 s after the request"
    assert "one was lost" in lost


def test_progress_and_what_comes_after_it() -> None:
    live = LiveView("images")
    live.show_progress(sight())
    assert "[######..................] 0:30 of 2:00" in drawn(live)
    live.show_progress(sight(second=120.0, is_draining=True))
    assert "draining the backlog" in drawn(live)
    live.show_progress(sight(duration_s=float("inf")))
    assert drawn(live) == "images  0:30"


@pytest.mark.parametrize(
    ("running", "requested", "picture"),
    [(2, 2, "●●"), (1, 3, "●○○"), (3, 1, "●◌◌"), (40, 40, "●" * 15 + "…")],
)
def test_replicas_that_run_come_and_go(running: int, requested: int, picture: str) -> None:
    assert dots(running, requested) == picture


def test_the_last_decisions_stand_below_with_their_reasons() -> None:
    live = LiveView("images")
    live.show_progress(sight(seen()))
    for wanted in range(3, 13):
        live.tick(tick(("recognise", wanted - 1, wanted)))
    text = drawn(live)
    assert "0:42  recognise 11 -> 12" in text
    assert "rate-above-capacity" in text
    assert "recognise 2 -> 3" not in text  # so many are not shown


def test_what_was_not_done_says_why_but_not_again_and_again() -> None:
    refused = tick(("recognise", 2, 3), applied=False, error="no machine is free")
    assert "not done: no machine is free" in next(decision_lines(refused))
    waiting = tick(("recognise", 2, 3), applied=False, error="recognise 3 is in progress")
    assert list(decision_lines(waiting)) == []


@pytest.mark.parametrize(
    ("kind", "numbers", "said"),
    [
        (
            "failed",
            {"error": "resize failed on row 7 of topic in:\nTraceback\n  a\nValueError: no\n"},
            "    0:07  resize failed on row 7 of topic in: ValueError: no\n",
        ),
        (
            "restarting",
            {"tries": 7, "delay_s": 32.0, "error": "Python worker failed to connect back."},
            "    0:07  resize: restarting in 32 s, try 7, because Python worker failed to connect"
            " back.\n",
        ),
        (
            "restarting",
            {"tries": 1, "delay_s": 0.0, "error": "why"},
            "    0:07  resize: restarting, try 1, because why\n",
        ),
        ("running", {"replicas": 3}, ""),
    ],
)
def test_what_happens_to_an_operator_is_said_at_once(
    kind: str, numbers: dict[str, Any], said: str
) -> None:
    stream = io.StringIO()
    screen = Screen(LiveView("images"), StopRequest(), stream)
    screen.report(event_from_json({"at": 7.0, "kind": kind, "operator": "resize", **numbers}))
    assert stream.getvalue() == said


@pytest.mark.parametrize("width", [20, 40, 79, 120])
@pytest.mark.parametrize("height", [3, 5, 8, 24])
def test_nothing_is_wider_or_higher_than_the_terminal(width: int, height: int) -> None:
    live = LiveView("a pipeline with a very long name under a very long workload", objective_s=5.0)
    many = {
        f"operator-with-a-long-name-{i}": op(f"operator-with-a-long-name-{i}") for i in range(9)
    }
    live.show_progress(sight(Snapshot(at=1.0, operators=many)))
    live.tick(tick(("recognise", 2, 3)))
    lines = live.lines(width, height)
    assert max(map(len, lines)) < width
    assert len(lines) < height


def test_a_line_for_a_log() -> None:
    line = plain_line(tick(("recognise", 2, 3)), sight(seen(queue=12)))
    words = "0:42 offered 8.0/s resize 1 (queue 0) recognise 2->3 (queue 12)"
    assert " ".join(line.split()) == words


class Terminal(io.StringIO):
    """Says that it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_a_terminal_is_drawn_over_and_gets_its_cursor_back(monkeypatch: Any) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream, stop = Terminal(), StopRequest()
    with Screen(LiveView("images"), stop, stream) as screen:
        screen.say("starting Spark")
        screen.show_progress(sight(seen()))
        first = stream.getvalue()
        rows = first.count("\n") - 1
        screen.show_progress(sight(seen(queue=3)))
        again = stream.getvalue()[len(first) :]
        assert again.startswith(f"\r\x1b[{rows}A")
        assert "\x1b[J" in again
        assert STOPPING not in again
        stop.is_asked = True
        screen.show_progress(sight(seen(queue=3)))
    assert STOPPING in stream.getvalue()
    assert stream.getvalue().endswith("\x1b[?25h")


@pytest.mark.parametrize("plain", [True, False])
def test_elsewhere_a_tick_is_a_line_and_nothing_is_drawn(plain: bool, monkeypatch: Any) -> None:
    monkeypatch.setenv("TERM", "xterm")
    stream = Terminal() if plain else io.StringIO()
    with Screen(LiveView("images"), StopRequest(), stream, plain=plain) as screen:
        screen.show_progress(sight(seen(queue=4)))
        assert stream.getvalue() == ""
        screen.tick(tick(("recognise", 2, 3)))
    text = stream.getvalue()
    assert "\x1b" not in text
    assert "recognise 2->3 (queue 4)" in text.splitlines()[0]
    assert "rate-above-capacity" in text.splitlines()[1]


def test_before_anything_is_measured_queues_are_shown_and_why_there_are_no_measures() -> None:
    status = Status(at=8.0, requested={"parse": 1}, running={"parse": 1}, queues={"parse": 7869})
    blind = Tick(at=8.0, status=status, error="no batch has been committed yet")
    line = plain_line(blind, None)
    assert "parse 1 (queue 7.87 k)" in line
    assert "no measures: no batch has been committed yet" in line
    live = LiveView("orders")
    live.show_progress(RunProgress(second=8.0, duration_s=60.0, queues={"parse": 7869}))
    assert "no measures yet" in drawn(live)
    assert "parse: 7,869 rows wait" in drawn(live)


def test_a_line_for_a_log_names_an_ingest_that_falls_behind() -> None:
    def line(*, is_behind: bool) -> str:
        ingest = IngestStatus(rows=10, backlog=44.0, unit="files", is_behind=is_behind)
        status = Status(at=8.0, requested={}, running={}, ingests={"orders": ingest})
        return plain_line(Tick(at=8.0, status=status), None)

    assert "orders BEHIND (44 files)" in line(is_behind=True)
    assert "BEHIND" not in line(is_behind=False)


def test_lines_of_a_run_are_in_the_order_of_time(capsys: pytest.CaptureFixture[str]) -> None:
    events = tuple(
        BehindEvent(at=at, operator=name, backlog=7.0, unit="files")
        for at, name in ((29.0, "late"), (22.0, "early"))
    )
    tick = Tick(at=30.0, status=Status(at=30.0, requested={}, running={}, events=events))
    Screen(LiveView("run", None), StopRequest(), plain=True).tick(tick)
    lines = capsys.readouterr().err.splitlines()
    assert [line.split()[0] for line in lines] == ["0:22", "0:29", "0:30"]
