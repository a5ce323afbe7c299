"""The JVM of a session, started so that it never outlives this process, whatever ends it when.

PySpark's own launcher lets the JVM end when its standard input does. A JVM that is just starting
may then wait for ever in its shutdown, and keep the lock of the run. Here the system kills it.
"""

import ctypes
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import IO, Any

from pyspark import SparkConf
from pyspark.errors import PySparkRuntimeError
from pyspark.find_spark_home import _find_spark_home
from pyspark.java_gateway import launch_gateway
from pyspark.serializers import UTF8Deserializer, read_int

_PORT, _SECRET = "PYSPARK_GATEWAY_PORT", "PYSPARK_GATEWAY_SECRET"
_CONNECTION = "_PYSPARK_DRIVER_CONN_INFO_PATH"
#: See prctl(2): the signal that a process gets when the thread that started it ends.
_PR_SET_PDEATHSIG = 1
#: What the JVM listens on: this machine only.
LOOPBACK = "127.0.0.1"

#: The JVM of this process, from its first moment on.
_started: list["subprocess.Popen[bytes]"] = []


def start_gateway(
    conf: SparkConf, directory: Path, output: IO[bytes], lock: int | None = None
) -> Any:
    """Start a JVM with these settings and connect to it.

    Settings stand on its command line, for everybody on this machine to read: no secrets. It
    writes how to connect to it into the directory, and what it prints to `output`; it inherits
    the descriptor of the lock.
    """
    connection = directory / "connection"
    connection.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "SPARK_CONNECT_MODE": "0",
        "SPARK_LOCAL_IP": LOOPBACK,
        _CONNECTION: str(connection),
    }
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
    """End the JVM of this process at once, with what it has started and not let go."""
    for process in _started:
        if process.poll() is None:
            # workers are in a group of their own, and one that hangs would not notice the end
            members = session_members(process.pid)
            os.killpg(process.pid, signal.SIGKILL)
            for member in members:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(member, signal.SIGKILL)
            with suppress(subprocess.TimeoutExpired):  # a signal handler must not wait for ever
                process.wait(timeout=5)
    _started.clear()


def session_members(leader: int) -> list[int]:
    """Return the processes of a session. Only Linux tells; elsewhere workers end by themselves."""
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
    """Start a process from a thread that lasts as long as this process does.

    The system kills it when that thread ends, so neither before nor after this process.
    """
    answer: SimpleQueue[subprocess.Popen[bytes] | Exception] = SimpleQueue()
    prepare = _prepare_child()

    def hold() -> None:
        try:
            # a signal to our group is for us alone
            child = subprocess.Popen(command, start_new_session=True, preexec_fn=prepare, **options)
        except Exception as error:
            answer.put(error)
            return
        _started.append(child)
        answer.put(child)
        threading.Event().wait()

    threading.Thread(target=hold, name="jvm", daemon=True).start()
    try:
        found = answer.get()
    except BaseException:  # a signal: the child must be known before it can be killed
        with suppress(Empty):
            answer.get(timeout=10)
        raise
    if isinstance(found, Exception):
        raise found
    return found


def _prepare_child() -> Callable[[], None]:
    """Return what the child does before it becomes another program."""
    parent = os.getpid()
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if prctl is not None:
            prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != parent:  # it was quicker
                os._exit(1)

    return prepare


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
