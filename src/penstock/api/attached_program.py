"""Runs a Python program that uses Spark, and attaches to its queries without changing it."""

import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from penstock.api.attach_arguments import read_bounds, read_duration, read_elastics
from penstock.api.attachment import Attachment, attach
from penstock.errors import InputError, PenstockError
from penstock.runs.attached_run import AttachSpec, prepare_attachment

#: Seconds between two looks for a session of the program.
POLL_S = 0.5


def run_attached(program: Path, arguments: Sequence[str], options: Mapping[str, Any]) -> int:
    """Run a program as `python PROGRAM ARGUMENTS` does; return its exit code.

    As soon as it has a Spark session, all queries of that session are followed. `options` are
    those of `penstock.attach`. What goes wrong with attaching is a line on stderr, and the program
    goes on.
    """
    if not program.is_file():
        raise InputError("PROGRAM", "there is no such file", where=str(program))
    _check_options(options)
    follower = SessionFollower(find_session, options)
    follower.start()
    try:
        return _run(program, arguments)
    finally:
        follower.stop()


def _check_options(options: Mapping[str, Any]) -> None:
    """Refuse a mistake before the program starts."""
    read_elastics(None, options["mode"])
    prepare_attachment(
        AttachSpec(
            application=" ",
            master="",
            policy=options["policy"],
            params=options["params"],
            guards=options["guards"],
            freshness_s=read_duration(options["freshness"], "freshness"),
            executors=read_bounds(options["executors"]),
            mode=options["mode"],
            interval_s=options["interval_s"],
        )
    )


def _run(program: Path, arguments: Sequence[str]) -> int:
    before = sys.argv, list(sys.path)
    sys.argv, sys.path = [str(program), *arguments], [str(program.resolve().parent), *sys.path]
    try:
        runpy.run_path(str(program), run_name="__main__")
    except SystemExit as ended:
        return _exit_code(ended.code)
    except Exception:  # an error of the program: show it as Python does
        traceback.print_exc()
        return 1
    finally:
        sys.argv, sys.path = before
    return 0


def _exit_code(code: Any) -> int:
    if code is None or isinstance(code, int):
        return code or 0
    print(code, file=sys.stderr)
    return 1


def find_session() -> Any:
    """Return the Spark session of this process; None while there is none."""
    from pyspark.sql import SparkSession  # noqa: PLC0415  (loads Spark)

    session: Any = getattr(SparkSession, "_instantiatedSession", None)
    return session if session is not None and session.sparkContext._jsc is not None else None


class SessionFollower:
    """Waits in a thread for a session, and attaches to it."""

    def __init__(self, find: Callable[[], Any], options: Mapping[str, Any]) -> None:
        self._find, self._options = find, options
        self._attached: Attachment | None = None
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="penstock-wait", daemon=True)

    def start(self) -> None:
        """Start to wait."""
        self._thread.start()

    def stop(self) -> None:
        """Detach; the program has ended."""
        self._is_stopped.set()
        self._thread.join()
        if self._attached is not None:
            try:
                self._attached.detach()
            except PenstockError as error:
                print(f"penstock: {error}", file=sys.stderr)

    def _follow(self) -> None:
        while not self._is_stopped.wait(POLL_S):
            session = self._find()
            if session is None:
                continue
            try:
                self._attached = attach(session, **self._options)
                print(f"penstock: attached, see {self._attached.directory}", file=sys.stderr)
            except Exception as error:  # the program must not notice
                print(f"penstock: cannot attach: {error}", file=sys.stderr)
            return
