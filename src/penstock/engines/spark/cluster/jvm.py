"""Starts the JVM of a session so that it never outlives this process.

PySpark's launcher ends the JVM when its standard input closes. A JVM that is still starting may
then hang in its shutdown and keep the lock of the run. Here the kernel kills it.
"""

import os
import shlex
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

import pyspark
from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

from penstock.engines.child_process import prepare_child

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_CONNECTION = "_PYSPARK_DRIVER_CONN_INFO_PATH"
#: Where a JVM listens for this machine only.
LOOPBACK = "127.0.0.1"

#: The JVM processes that this process has started.
_started: list["subprocess.Popen[bytes]"] = []


def start_gateway(
    conf: SparkConf,
    directory: Path,
    output: IO[bytes],
    lock: int | None = None,
    address: str | None = LOOPBACK,
) -> Any:
    """Start a JVM with these settings and connect to it.

    Settings are visible on its command line, so they must contain no secrets. The JVM writes its
    connection data to the directory and its output to `output`; it inherits the lock descriptor.
    It listens on the address; None lets Spark choose one that other machines reach.
    """
    connection = directory / "connection"
    connection.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "SPARK_CONNECT_MODE": "0",
        _CONNECTION: str(connection),
    }
    if address is not None:
        environment["SPARK_LOCAL_IP"] = address
    try:
        process = _spawn(
            _command(conf),
            env=environment,
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            pass_fds=() if lock is None else (lock,),
        )
        gateway = _connect(process, connection)
    except BaseException:
        kill_jvm()
        raise
    gateway.proc = process
    return gateway


def kill_jvm() -> None:
    """Kill the JVM of this process and all processes of its session."""
    for process in _started:
        if process.poll() is None:
            # workers are in another process group, and a hanging one would not notice the end
            members = session_members(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            for member in members:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(member, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # a signal handler must not wait for ever
                process.wait(timeout=5)
    _started.clear()


def session_members(leader: int) -> list[int]:
    """Return the processes of a session (Linux only; elsewhere workers end by themselves)."""
    members = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # it has ended
            # behind the name, which may hold anything: state, parent, group, session
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader:
                members.append(int(path.parent.name))
    return members


def _command(conf: SparkConf) -> list[str]:
    settings = [word for key, value in conf.getAll() for word in ("--conf", f"{key}={value}")]
    arguments = shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
    return [f"{_find_spark_home()}/bin/spark-submit", *settings, *arguments]


def _spawn(command: list[str], **options: Any) -> "subprocess.Popen[bytes]":
    """Start a process from a thread that lives as long as this process.

    The kernel kills the child when that thread ends, so exactly when this process ends.
    """
    answer: SimpleQueue[subprocess.Popen[bytes] | Exception] = SimpleQueue()
    prepare = prepare_child()

    def hold() -> None:
        try:
            # a new session: signals to our process group must not reach it
            child = subprocess.Popen(command, start_new_session=True, preexec_fn=prepare, **options)
        except Exception as error:
            answer.put(error)
            return
        _started.append(child)
        answer.put(child)
        threading.Event().wait()

    threading.Thread(target=hold, name="jvm", daemon=True).start()
    try:
        child = answer.get()
    except BaseException:  # a signal: the child must be registered before it can be killed
        with suppress(Empty):
            answer.get(timeout=10)
        raise
    if isinstance(child, Exception):
        raise child
    return child


def _connect(process: "subprocess.Popen[bytes]", connection: Path) -> Any:
    while not connection.is_file():
        if process.poll() is not None:
            raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})
        time.sleep(0.02)
    with connection.open("rb") as stream:
        port = read_int(stream)  # type: ignore[no-untyped-call]
        secret = UTF8Deserializer().loads(stream)  # type: ignore[no-untyped-call]
    connection.unlink()
    with _environment({_PORT: str(port), _SECRET: secret}):
        return launch_gateway()  # type: ignore[no-untyped-call]


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]


_HOME_VARIABLE = "SPARK_HOME"
#: Workers of a cluster write here, whatever the configuration.
_WORK = "work"
#: Contains PySpark as source in an archive. It would be first on the path of each Python process,
#: which then compiles what it imports and reads the index of the archive in each worker.
_PYTHON = "python"


@contextmanager
def link_home(place: Path) -> Iterator[None]:
    """Set SPARK_HOME to a directory of links to the installation, without the slow parts."""
    installed = Path(_find_spark_home())
    skipped = {_WORK}
    if installed.samefile(Path(pyspark.__file__).parent):  # workers can import the same PySpark
        skipped.add(_PYTHON)
    place.mkdir()
    for path in installed.iterdir():
        if path.name not in skipped:
            (place / path.name).symlink_to(path)
    before = os.environ.get(_HOME_VARIABLE)
    os.environ[_HOME_VARIABLE] = str(place)
    try:
        yield
    finally:
        if before is None:
            del os.environ[_HOME_VARIABLE]
        else:
            os.environ[_HOME_VARIABLE] = before
