"""A run in a child process: a stand-in for the real one, no Spark."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from penstock.errors import LockedError, PenstockError
from penstock.files.lock import Lock
from penstock.lab.grid.subprocess_run import OUTPUT, REPORT, run_in_subprocess
from penstock.runs.spec import SparkSpec, read_spec

SPEC = SparkSpec(pipeline="images", workload="pulsar", minutes=3, build_args={"service_s": 0.2})


def command(body: str) -> tuple[str, ...]:
    """A program that gets the directory as its last argument, as the child of a real run does."""
    head = "import json, os, pathlib, signal, sys, time\nplace = pathlib.Path(sys.argv[1])\n"
    return (sys.executable, "-c", head + body)


def ending(how: str) -> str:
    return f"""
told = {{"ended": "{how}", "replicas": {{"avg": 2.0}}}}
(place / "result.json").write_text(json.dumps(told))
"""


def ended(place: Path, program: tuple[str, ...]) -> str:
    result = run_in_subprocess(SPEC, place, program)
    assert result.spark is not None
    return result.spark.ended


def test_the_run_finds_its_spec_and_leaves_what_it_shows(tmp_path: Path) -> None:
    place = tmp_path / "a-1"
    body = "print('figures'); print('tick', file=sys.stderr)" + ending("finished")
    result = run_in_subprocess(SPEC, place, command(body))
    assert result.scores is not None and result.scores.replicas.avg == 2.0
    assert read_spec(place) == SPEC
    assert (place / REPORT).read_text() == "figures\n"
    assert (place / OUTPUT).read_text() == "tick\n"


def test_the_run_begins_a_journal_of_its_own(tmp_path: Path) -> None:
    """A line that is there already would make it a run that goes on."""
    body = "assert not (place / 'journal.jsonl').exists()" + ending("finished")
    assert ended(tmp_path / "a-1", command(body)) == "finished"


def test_what_an_earlier_run_has_left_goes(tmp_path: Path) -> None:
    place = tmp_path / "a-1"
    (place / "topics").mkdir(parents=True)
    (place / "result.json").write_text(json.dumps({"ended": "stopped"}))
    body = "assert not (place / 'topics').exists()" + ending("cut")
    assert ended(place, command(body)) == "cut"


def test_data_of_an_earlier_run_is_moved_aside(tmp_path: Path) -> None:
    place = tmp_path / "a-1"
    for number in (1, 2):
        commits = place / "topics" / "a" / "commits"
        commits.mkdir(parents=True)
        (commits / "00000000000000000000.json").write_text(str(number))
        body = "assert not (place / 'topics').exists()" + ending("cut")
        assert ended(place, command(body)) == "cut"
    kept = [tmp_path / f"a-1.earlier-{number}" / "topics" for number in (1, 2)]
    assert [len(list(topics.rglob("*.json"))) for topics in kept] == [1, 1]


def test_a_run_that_still_goes_on_is_left_alone(tmp_path: Path) -> None:
    place = tmp_path / "a-1"
    place.mkdir()
    with Lock(place / "lock"), pytest.raises(LockedError):
        run_in_subprocess(SPEC, place, command(ending("finished")))
    assert place.is_dir()


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ("sys.exit(1)", "did not finish (no output)"),
        ("print('error: it burns', file=sys.stderr); os._exit(1)", "(error: it burns)"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "did not finish"),
        (ending("failed"), "the run has failed"),
        (ending("stopped"), "the run has stopped"),
        ("(place / 'result.json').write_text('{\"ended\": \"finished\"}')", "too short"),
    ],
)  # fmt: skip
def test_a_run_without_figures_says_where_to_look(tmp_path: Path, body: str, problem: str) -> None:
    with pytest.raises(PenstockError) as caught:
        run_in_subprocess(SPEC, tmp_path / "a-1", command(body))
    assert problem in str(caught.value) and str(tmp_path / "a-1" / OUTPUT) in str(caught.value)


_GENTLE = """
heard = []
signal.signal(signal.SIGINT, lambda *_: heard.append(1))
(place / "ready").touch()
while not heard:
    time.sleep(0.01)
time.sleep(0.2)
(place / "ended").write_text(str(len(heard)))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_is_handed_on_once_and_waited_for(
    tmp_path: Path, number: signal.Signals
) -> None:
    place, usual = tmp_path / "a-1", signal.default_int_handler
    before = signal.signal(number, usual)  # whoever began these tests may ignore it
    try:
        asking = threading.Thread(target=_interrupt, args=(place / "ready", number))
        asking.start()
        with pytest.raises(KeyboardInterrupt):
            run_in_subprocess(SPEC, place, command(_GENTLE))
        asking.join()
        assert (place / "ended").read_text() == "1"
        assert signal.getsignal(number) is usual
    finally:
        signal.signal(number, before)


def _interrupt(ready: Path, number: signal.Signals) -> None:
    until = time.monotonic() + 20
    while not ready.exists() and time.monotonic() < until:
        time.sleep(0.01)
    os.kill(os.getpid(), number)


def test_what_is_ignored_stays_ignored(tmp_path: Path) -> None:
    """A run that was started with nohup outlives its terminal."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        body = "os.kill(os.getppid(), signal.SIGHUP)" + ending("finished")
        assert ended(tmp_path / "a-1", command(body)) == "finished"
    finally:
        signal.signal(signal.SIGHUP, before)
