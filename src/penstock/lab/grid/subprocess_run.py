"""A run on Spark in a process of its own: what becomes of it does not touch who waits for it."""

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any

from penstock.engines.spark.run_layout import has_data
from penstock.errors import PenstockError
from penstock.files.lock import Lock
from penstock.runs.run_directory import JOURNAL, LOCK, RESULT, begin_run
from penstock.runs.spec import SparkSpec

#: What the run says while it lasts, and what is shown of it at its end.
OUTPUT, REPORT = "output.log", "report.txt"
#: How a run must have ended to count: `cut` is one that its policy left with too much to do.
COUNTS = ("finished", "cut")
#: The same as on the command line.
COMMAND = (sys.executable, "-m", "penstock", "run", "--plain", "--resume")
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_in_subprocess(
    spec: SparkSpec, place: Path, command: tuple[str, ...] = COMMAND
) -> dict[str, Any]:
    """Run a spec from its beginning and return its figures; an earlier one is moved aside.

    Ctrl-C stops the run at the end of a batch, a second one at once; then `KeyboardInterrupt`
    is raised. To be called in the main thread.
    """
    _make_room(place)
    place.mkdir(mode=0o700, parents=True)
    with begin_run(place, spec.to_json(), {}):
        pass
    (place / JOURNAL).unlink()  # the run itself writes it, with a header that it knows better
    with (place / REPORT).open("wb") as shown, (place / OUTPUT).open("wb") as said, _told() as told:
        # in a session of its own, so that it hears of Ctrl-C from us, and once
        child = subprocess.Popen(
            [*command, str(place)],
            stdin=subprocess.DEVNULL,
            stdout=shown,
            stderr=said,
            start_new_session=True,
        )
        told.append(child)
        child.wait()
    return _result(place)


def _make_room(place: Path) -> None:
    """Remove what an earlier run has left, unless it still goes on; data is moved aside."""
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
def _told() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Hand signals on to the process that is put into the list, and raise when it has ended."""
    child: list[subprocess.Popen[bytes]] = []
    caught: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        caught.append(number)
        if not child:
            raise KeyboardInterrupt
        child[0].send_signal(signal.SIGINT)

    # who said nohup wants it to go on
    heard = [number for number in _SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, handle) for number in heard}
    try:
        yield child
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if caught:
        raise KeyboardInterrupt


def _result(place: Path) -> dict[str, Any]:
    try:
        result: dict[str, Any] = json.loads((place / RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        lines = (place / OUTPUT).read_text(encoding="utf-8", errors="replace").split("\n")
        last = next((line for line in reversed(lines) if line.strip()), "it said nothing")
        raise PenstockError(f"it did not come to its end ({last}); see {place / OUTPUT}") from None
    if result["ended"] not in COUNTS:
        raise PenstockError(f"it has {result['ended']}; see {place / OUTPUT}")
    if "replicas" not in result:
        raise PenstockError(f"it was too short to measure anything; see {place / OUTPUT}")
    return result
