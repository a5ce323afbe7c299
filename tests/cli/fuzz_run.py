"""Runs fuzzed command lines in this process, and says which promises they break."""

import io
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from tests.cli.fuzz_case import Case
from tests.cli.fuzz_cases import make_case
from tests.cli.fuzz_files import DEVICES

from penstock.cli.main import main

#: CPU seconds and seconds that a case may take; they take milliseconds.
CPU_LIMIT_S, LIMIT_S = 10, 120
#: What commands without Spark document; some, that a run does not run.
CODES = {0, 1, 2}
NOT_RUNNING, ABOUT_RUNS = 3, (["status"], ["stop"])
#: More on one line is for no reader.
LONGEST_LINE = 1000


class Hung(BaseException):
    """A case took too long."""


@dataclass
class Outcome:
    """What became of a case."""

    case: Case
    code: object = None
    out: str = ""
    err: str = ""
    escaped: str = ""
    seconds: float = 0.0
    left: set[str] = field(default_factory=set)
    #: Links to devices that the command replaced by a file.
    replaced: set[str] = field(default_factory=set)

    @property
    def problems(self) -> list[str]:
        """The promises that it breaks."""
        found = []
        if self.escaped:
            found.append(f"escaped: {self.escaped.strip().splitlines()[-1][:200]}")
        elif self.code == NOT_RUNNING and self.case.words in ABOUT_RUNS:
            pass
        elif self.code not in CODES:
            found.append(f"exit code {self.code}")
        if "Traceback (most recent" in self.err + self.out:
            found.append("a traceback is shown")
        if self.code == 2 and not self.err.strip():
            found.append("exit code 2 without a word")
        if any(len(line) > LONGEST_LINE for line in self.err.splitlines()):
            found.append("an endless line of stderr")
        if any(name.endswith((".tmp", ".part")) for name in self.left):
            found.append(f"half a file: {sorted(self.left)}")
        if self.code == 2 and self.left and self.case.words[:1] not in (["lab"], ["produce"]):
            found.append(f"left behind: {sorted(self.left)[:5]}")
        if self.replaced:
            found.append(f"replaced a device: {sorted(self.replaced)}")
        return found


def run_case(number: int, files: Path) -> Outcome:
    """Run one case in a directory of its own, which goes afterwards."""
    before, home = Path.cwd(), Path(tempfile.mkdtemp(prefix="case-", dir=files.parent))
    os.chdir(home)
    try:
        outcome = Outcome(make_case(number, files))
        known = _entries(home)
        began = time.monotonic()
        with _streams(outcome), _limits():
            _call(outcome)
        outcome.seconds = time.monotonic() - began
        outcome.left = _entries(home) - known
        outcome.replaced = {name for name in DEVICES if not Path(name).is_symlink()}
        return outcome
    finally:
        os.chdir(before)
        shutil.rmtree(home)


def _call(outcome: Outcome) -> None:
    try:
        outcome.code = main(outcome.case.argv)
    except SystemExit as stopped:
        outcome.code = stopped.code
        if not isinstance(stopped.code, int) or "argparse" not in traceback.format_exc():
            outcome.escaped = traceback.format_exc()
    except BaseException:
        outcome.escaped = traceback.format_exc()


def _entries(home: Path) -> set[str]:
    return {str(path.relative_to(home)) for path in home.rglob("*")}


@contextmanager
def _streams(outcome: Outcome) -> Iterator[None]:
    """Streams as a process has them: stdout refuses what is not Unicode, stderr escapes it."""
    before = sys.stdin, sys.stdout, sys.stderr
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", e) for e in ("strict", "backslashreplace"))
    data = outcome.case.stdin.encode("utf-8", "surrogateescape")
    sys.stdin = io.TextIOWrapper(io.BytesIO(data), "utf-8")
    sys.stdout, sys.stderr = out, err
    try:
        yield
    finally:
        sys.stdin, sys.stdout, sys.stderr = before
        outcome.out, outcome.err = (_text(stream) for stream in (out, err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    return stream.buffer.getvalue().decode()  # type: ignore[attr-defined]


@contextmanager
def _limits() -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Hung("".join(traceback.format_stack(frame)[-4:]))

    kinds = (
        (signal.SIGALRM, signal.ITIMER_REAL, LIMIT_S),
        (signal.SIGPROF, signal.ITIMER_PROF, CPU_LIMIT_S),
    )
    before = [signal.signal(number, stop) for number, _, _ in kinds]
    for _, timer, limit_s in kinds:
        signal.setitimer(timer, limit_s)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(kinds, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)
