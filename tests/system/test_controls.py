"""People control a run on Spark through control.jsonl: pins and pauses, with who asked."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from penstock.control.requests import ControlRequest
from penstock.engines.events import ControlEvent
from penstock.errors import InputError
from penstock.runs.control_file import append_request
from penstock.runs.journal import Journal, read_journal

pytestmark = pytest.mark.spark
EXAMPLE = Path(__file__).parents[2] / "examples" / "orders.py"


def wait_until(run: Path, is_true: Callable[[Journal], bool], seconds: float = 120.0) -> Journal:
    """Wait until the journal of a run has something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            journal = read_journal(run / "journal.jsonl")
        except InputError:  # the run is starting
            journal = Journal({}, ())
        if is_true(journal):
            return journal
        time.sleep(0.3)
    raise AssertionError("the journal never had it")


def ask(run: Path, action: str, **fields: object) -> None:
    request = ControlRequest(action=action, who="ann", asked_at=time.time(), **fields)  # type: ignore[arg-type]
    append_request(run, request)


def test_a_pin_takes_effect_and_a_pause_stops_changes(tmp_path: Path) -> None:
    run = tmp_path / "run"
    options = ["--workload", "cosine * 0.001", "--minutes", "100", "--speed-up", "20", "--plain"]
    command = [sys.executable, "-m", "penstock", "run", str(EXAMPLE), *options, "--out", str(run)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(run, lambda journal: any(tick.decision for tick in journal.ticks))
        ask(run, "pin", operator="keep_large", replicas=3)
        wait_until(run, lambda journal: journal.ticks[-1].status.running.get("keep_large") == 3)
        ask(run, "pause")
        ask(run, "unpin", operator="keep_large")

        def is_paused(journal: Journal) -> bool:
            decided = [tick.decision for tick in journal.ticks[-3:]]
            return all(d and d.targets["keep_large"].wanted == 3 for d in decided) and any(
                isinstance(event, ControlEvent) and event.action == "unpin"
                for tick in journal.ticks[:-3]
                for event in tick.status.events
            )

        journal = wait_until(run, is_paused, 60.0)
    finally:
        process.terminate()
        process.wait(120)
    events = [e for t in journal.ticks for e in t.status.events if isinstance(e, ControlEvent)]
    assert [(e.action, e.who, e.number) for e in events] == [
        ("pin", "ann", 1),
        ("pause", "ann", 2),
        ("unpin", "ann", 3),
    ]
    assert all(abs(event.asked_at - time.time()) < 600 for event in events)
