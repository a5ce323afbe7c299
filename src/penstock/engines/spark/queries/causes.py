"""Finds why a query stopped, in the messages of Spark and Python workers. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.engines.spark.queries.failures import make_signature

#: After this line Spark describes the query, not the error.
_ABOUT_QUERY = "=== Streaming Query ==="
_TRACEBACK = "Traceback (most recent call last):"
#: The first line after a Python traceback inside a Java message.
_END_OF_TRACE = re.compile(r"^\s+at [\w.$/]+\(|^Driver stacktrace:|^\s*SQLSTATE: |^Caused by: ")
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]*)", line \d+')
#: Frames of Spark and Penstock, which do not help the user.
_MACHINERY = re.compile(r"/(pyspark|py4j|penstock/engines|penstock/pipelines)/|<frozen ")
_LOST_TASK = re.compile(r"Lost task [^)]*\)[^)]*\): (?P<cause>.*)", re.DOTALL)
_CAUSED_BY = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_SQL_STATE = re.compile(r"\s*SQLSTATE: (\w+)\s*")
_PACKAGE = re.compile(r"^(?:[a-z_][\w]*\.)+(?=[A-Z])")
_PLAIN = re.compile(r"^(SparkException|RuntimeException|Exception|SparkRuntimeException): (?=.)")
#: SQL states of the user's errors: data, syntax and access, external routine.
_STATES_OF_USERS = ("22", "42", "38")

#: Failures of machines, processes and networks, which a retry may overcome.
_INFRASTRUCTURE = re.compile(
    r"connect back|worker exited unexpectedly|failed to launch worker|ExecutorLostFailure|"
    r"OutOfMemory|out of memory|heartbeat|No space left|Connection (reset|refused)|Broken pipe|"
    r"EOFException|SocketException|SocketTimeout|ClosedChannel|TimeoutException|FetchFailed|"
    r"has been shutdown|stopped SparkContext|another query with same id",
    re.IGNORECASE,
)
_CRASH = re.compile(r"worker exited unexpectedly|EOFException|Connection reset|Broken pipe")
_OF_MACHINES = (
    *("MemoryError", "FullError", "DamagedError", "LockedError", "OutageError", "EOFError"),
)
_OF_NETWORKS = (
    *("ConnectionError", "ConnectionRefusedError", "ConnectionResetError"),
    *("ConnectionAbortedError", "BrokenPipeError", "TimeoutError", "gaierror"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """The cause that stopped a query."""

    #: One line.
    message: str
    #: The user's part of a Python traceback; empty if there was none.
    traceback: str = ""
    #: Whether the user's code, or a row that it cannot process, is the cause.
    is_users: bool = False
    #: Whether a Python worker died without an exception.
    is_crash: bool = False
    #: Whether a network is the cause; it may recover.
    is_network: bool = False
    #: Equal for two failures with the same cause.
    signature: str = ""

    @property
    def detail(self) -> str:
        """Details that the message omits."""
        return self.traceback


def find_cause(text: str) -> Cause:
    """Find the cause in the text of a query's exception.

    >>> find_cause("Python worker failed to connect back.\\n=== Streaming Query ===\\n...").message
    'Python worker failed to connect back.'
    """
    report = text.partition(_ABOUT_QUERY)[0].strip()
    report = report.partition("\nJVM stacktrace:")[0] or report
    if _TRACEBACK in report:
        return _parse_python(report)
    return _parse_java(report)


def _parse_python(text: str) -> Cause:
    lines = list(_read_trace(text))
    message = _find_exception_line(lines)
    kind = message.partition(":")[0].rpartition(".")[2]
    own = _remove_machinery(lines)
    has_own_frames = any(map(_FRAME.match, own))
    is_input = kind in ("InputError", "PenstockError")
    trace = "\n".join(own if has_own_frames else lines)
    return Cause(
        message=message.removeprefix("penstock.errors."),
        traceback=trace,
        is_users=kind not in _OF_MACHINES and (has_own_frames or is_input),
        is_network=kind in _OF_NETWORKS,
        signature=repr(make_signature(trace)),
    )


def _read_trace(text: str) -> Iterator[str]:
    """Yield the lines of the Python traceback in a text."""
    for line in text[text.index(_TRACEBACK) :].splitlines():
        if _END_OF_TRACE.match(line):
            return
        yield line.rstrip()


def _find_exception_line(lines: Sequence[str]) -> str:
    """Return the first line after the last frame that is not indented."""
    last = max((i for i, line in enumerate(lines) if _FRAME.match(line)), default=0)
    behind = [line for line in lines[last + 1 :] if line and not line[0].isspace()]
    return behind[0].strip() if behind else lines[-1].strip()


def _remove_machinery(lines: Sequence[str]) -> list[str]:
    """Remove the frames of Spark and of this package, with their code lines."""
    kept, is_left_out = [], False
    for line in lines:
        frame = _FRAME.match(line)
        if frame is not None:
            is_left_out = bool(_MACHINERY.search(frame["file"]))
        elif not line[:1].isspace():
            is_left_out = False
        if not is_left_out:
            kept.append(line)
    return _trim(kept)


def _trim(lines: list[str]) -> list[str]:
    while lines and not lines[-1].strip():
        lines.pop()
    return lines


def _parse_java(text: str) -> Cause:
    lost_task = _LOST_TASK.search(text)
    first = (lost_task["cause"] if lost_task else text).strip()
    reasons = [first.partition("\n")[0], *_CAUSED_BY.findall(text)]
    message = _shorten(reasons[0])
    if len(reasons) > 1 and (deepest := _shorten(reasons[-1])) not in message:
        message = f"{message} ({deepest})"
    state = _SQL_STATE.search(text)
    is_infrastructure = bool(_INFRASTRUCTURE.search(text.partition("\n\tat ")[0]))
    is_users = state is not None and state[1].startswith(_STATES_OF_USERS)
    return Cause(
        message=message or "no reason was given",
        is_users=is_users and not is_infrastructure,
        is_crash=bool(_CRASH.search(text)),
        signature=re.sub(r"\d+", "#", message)[:200],
    )


def _shorten(line: str) -> str:
    """Remove Java packages and the SQL state from a message."""
    short = _PACKAGE.sub("", _SQL_STATE.sub(" ", line).strip())
    return _PLAIN.sub("", short).strip()
