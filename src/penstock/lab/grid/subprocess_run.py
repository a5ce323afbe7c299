"""Runs a spec on Spark in a child process, whose failures do not affect the grid."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType

from penstock.engines.spark.run_layout import has_data
from penstock.errors import InputError, PenstockError
from penstock.files.lock import Lock
from penstock.runs.result import RunResult
from penstock.runs.run_directory import JOURNAL, LOCK, RESULT, begin_run, read_result
from penstock.runs.spec import SparkSpec

#: Messages of the run while it lasts, and its report at the end.
OUTPUT, REPORT = "output.log", "report.txt"
#: Ends of a run with a valid result; `cut`: the run ended before its backlog was drained.
VALID_ENDS = ("finished", "cut")
#: The command gets the directory. It is not imported, because `reports` imports `lab`.
COMMAND = (sys.executable, "-m", "penstock.reports.child_run")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_in_subprocess(
    spec: SparkSpec, place: Path, command: tuple[str, ...] = COMMAND
) -> RunResult:
    """Run a spec from the start and return its result; an earlier run is renamed.

    Ctrl-C stops the run at the end of a batch, a second Ctrl-C at once; then the function raises
    `KeyboardInterrupt`. Call it in the main thread.
    """
    _clear_directory(place)
    place.mkdir(mode=0o700, parents=True)
    with begin_run(place, spec.to_json(), {}):
        pass
    (place / JOURNAL).unlink()  # the run writes it with a complete header
    with (
        (place / REPORT).open("wb") as report,
        (place / OUTPUT).open("wb") as output,
        _forward_signals() as children,
    ):
        # a new session: the child gets Ctrl-C only from this process, and once
        child = subprocess.Popen(
            [*command, str(place)],
            stdin=subprocess.DEVNULL,
            stdout=report,
            stderr=output,
            start_new_session=True,
        )
        children.append(child)
        child.wait()
    return _result(place)


def _clear_directory(place: Path) -> None:
    """Remove the files of an earlier run; rename its directory if it has data.

    Raises an error while that run is active.
    """
    if not place.is_dir():
        return
    with Lock(place / LOCK):
        if has_data(place):
            place.rename(_free_name(place))
        else:
            shutil.rmtree(place)


def _free_name(place: Path) -> Path:
    names = (place.with_name(f"{place.name}.earlier-{number}") for number in count(1))
    return next(name for name in names if not name.exists())


@contextmanager
def _forward_signals() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Forward signals to the process in the list; raise `KeyboardInterrupt` after its end."""
    children: list[subprocess.Popen[bytes]] = []
    signals: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        signals.append(number)
        if not children:
            raise KeyboardInterrupt
        children[0].send_signal(signal.SIGINT)

    # nohup ignores SIGHUP: the run continues without its terminal
    handled = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in handled}
    try:
        yield children
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if signals:
        raise KeyboardInterrupt


def _result(place: Path) -> RunResult:
    try:
        result = read_result(place / RESULT)
    except InputError:
        result = None
    if result is None or result.spark is None:
        lines = (place / OUTPUT).read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "no output")
        raise PenstockError(f"the run did not finish ({last}); see {place / OUTPUT}") from None
    if result.spark.ended not in VALID_ENDS:
        raise PenstockError(f"the run has {result.spark.ended}; see {place / OUTPUT}")
    if result.scores is None:
        raise PenstockError(f"the run was too short to measure anything; see {place / OUTPUT}")
    return result
