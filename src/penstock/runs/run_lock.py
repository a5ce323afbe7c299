"""The lock of a run directory, and the signals and errors of the process that holds it."""

import logging
import shutil
import signal
import stat
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from py4j import java_gateway  # type: ignore[import-untyped]
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from penstock.engines.spark.run_layout import has_data
from penstock.errors import InputError, LockedError, PenstockError
from penstock.files.lock import Lock
from penstock.runs.run_directory import LOCK, SPEC_FILE

#: A killed run holds its directory until its JVM has ended; a driver that seems alive may have been
#: killed a moment ago.
PATIENCE_S, SHORT_PATIENCE_S = 20.0, 2.0
#: Loggers that report broken sockets when the JVM ends. With a handler, their
#: records never reach Python's last-resort handler, which prints to stderr.
SPARK_LOGGERS = ("py4j", "pyspark", "SQLQueryContextLogger", "DataFrameQueryContextLogger")


def acquire_soon(lock: Lock, say: Callable[[str], None]) -> None:
    """Take the lock of a run; wait for the JVM of a killed run to release it."""
    began_s, is_announced = time.monotonic(), False
    while True:
        try:
            lock.acquire()
            return
        except LockedError as error:
            patience_s = SHORT_PATIENCE_S if error.holder.startswith("process") else PATIENCE_S
            if time.monotonic() - began_s > patience_s:
                raise
            if not is_announced:
                say(f"{lock.path.parent} is still held by {error.holder}; waiting for it to end")
                is_announced = True
            time.sleep(0.1)


@contextmanager
def run_lock(
    directory: Path,
    say: Callable[[str], None],
    acquire: Callable[[Lock, Callable[[str], None]], None] = acquire_soon,
) -> Iterator[Lock]:
    """Hold the lock of a run, taken as `acquire` does."""
    try:
        _make_private(directory)
    except OSError as error:
        problem = f"cannot be a run directory: {error.strerror}"
        raise InputError("out", problem, where=str(directory)) from None
    lock = Lock(directory / LOCK)
    acquire(lock, say)
    try:
        yield lock
    finally:
        lock.release()


def _make_private(directory: Path) -> None:
    """Make a directory that only its owner can write to, or revoke the write access of others.

    Operators are stored in it as pickles: write access means running code at the next start.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    try:
        directory.mkdir(mode=0o700)
    except FileExistsError:
        if not directory.is_dir():
            raise
        with suppress(PermissionError):  # another user owns it
            directory.chmod(stat.S_IMODE(directory.stat().st_mode) & ~0o022)


def remove_empty_run(directory: Path) -> bool:
    """Remove a run that has not begun; from any other directory, only the lock.

    Returns False for a directory with data, which is never removed.
    """
    if has_data(directory):
        return False
    if (directory / SPEC_FILE).is_file():
        shutil.rmtree(directory)
    else:
        (directory / LOCK).unlink(missing_ok=True)
    return True


@contextmanager
def keep_signal_handlers() -> Iterator[None]:
    """Restore the handler of Ctrl-C, which Spark replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGINT)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def quiet_spark_loggers() -> None:
    """Install null handlers so that Spark's and py4j's shutdown errors stay silent.

    The root logger is left alone: it belongs to the program that uses Penstock.
    """
    for name in SPARK_LOGGERS:
        logger = logging.getLogger(name)
        if not logger.handlers:
            logger.addHandler(logging.NullHandler())
    # py4j reports an interrupted call with logging.exception(), which configures the root logger
    java_gateway.logging = java_gateway.logger


def silence_accumulator_server(session: SparkSession) -> None:
    """Silence a thread of Spark that prints errors without a logger."""
    server = session.sparkContext._accumulatorServer
    server.handle_error = lambda *_: None  # type: ignore[method-assign]


@contextmanager
def spark_errors(directory: Path) -> Iterator[None]:
    """Report broken sockets as what they mean: Spark has ended."""
    try:
        yield
    except (Py4JError, ConnectionError) as error:
        problem = f"Spark has ended ({type(error).__name__}); see {directory / 'spark.log'}"
        hint = f"penstock run --resume {directory} resumes it"
        raise PenstockError(f"{problem}\nhint: {hint}") from error
