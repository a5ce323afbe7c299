"""Why a query stopped: the cause, out of what Spark and Python workers print. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from penstock.engines.spark.queries.failures import make_signature

#: Behind this line Spark describes the query, not what happened.
_ABOUT_QUERY = "=== Streaming Query ==="
_TRACEBACK = "Traceback (most recent call last):"
#: What ends a traceback that stands in a text of Java's.
_END_OF_TRACE = re.compile(r"^\s+at [\w.$/]+\(|^Driver stacktrace:|^\s*SQLSTATE: |^Caused by: ")
_FRAME = re.compile(r'^\s+File "(?P<file>[^"]*)", line \d+')
#: Frames that are neither the user's nor of a library that the user calls.
_MACHINERY = re.compile(r"/(pyspark|py4j|penstock/engines|penstock/pipelines)/|<frozen ")
_LOST_TASK = re.compile(r"Lost task [^)]*\)[^)]*\): (?P<cause>.*)", re.DOTALL)
_CAUSED_BY = re.compile(r"^Caused by: (.*)$", re.MULTILINE)
_SQL_STATE = re.compile(r"\s*SQLSTATE: (\w+)\s*")
_PACKAGE = re.compile(r"^(?:[a-z_][\w]*\.)+(?=[A-Z])")
_PLAIN = re.compile(r"^(SparkException|RuntimeException|Exception|SparkRuntimeException): (?=.)")
#: States of errors in rows or expressions: data, syntax and access, a routine of the user's.
_STATES_OF_USERS = ("22", "42", "38")

#: Machines, processes and networks; whoever waits may see them mended.
_INFRASTRUCTURE = re.compile(
    r"connect back|worker exited unexpectedly|failed to launch worker|ExecutorLostFailure|"
    r"OutOfMemory|out of memory|heartbeat|No space left|Connection (reset|refused)|Broken pipe|"
    r"EOFException|SocketException|SocketTimeout|ClosedChannel|TimeoutException|FetchFailed|"
    r"has been shutdown|stopped SparkContext|another query with same id",
    re.IGNORECASE,
)
_CRASH = re.compile(r"worker exited unexpectedly|EOFException|Connection reset|Broken pipe")
_OF_MACHINES = ("MemoryError", "FullError", "DamagedError", "LockedError", "EOFError")
_OF_NETWORKS = (
    *("ConnectionError", "ConnectionRefusedError", "ConnectionResetError"),
    *("ConnectionAbortedError", "BrokenPipeError", "TimeoutError", "gaierror"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What stopped a query."""

    #: In one line.
    message: str
    #: The user's part of a Python traceback; empty if there was none.
    traceback: str = ""
    #: Whether the user's code, or a row that it cannot take, is the cause.
    is_users: bool = False
    #: Whether a Python worker died without a word.
    is_crash: bool = False
    #: Whether a network is the cause, which may come back.
    is_network: bool = False
    #: The same for two failures that have the same cause.
    signature: str = ""

    @property
    def detail(self) -> str:
        """What the message leaves out."""
        return self.traceback


def find_cause(text: str) -> Cause:
    """Find the cause in the text of a query's exception.

    >>> find_cause("Python worker failed to connect back.\\n=== Streaming Query ===\\n...").message
    'Python worker failed to connect back.'
    """
    told = text.partition(_ABOUT_QUERY)[0].strip()
    told = told.partition("\nJVM stacktrace:")[0] or told
    if _TRACEBACK in told:
        return _parse_python(told)
    return _parse_java(told)


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
    """Return the line behind the last frame that is not indented."""
    last = max((i for i, line in enumerate(lines) if _FRAME.match(line)), default=0)
    behind = [line for line in lines[last + 1 :] if line and not line[0].isspace()]
    return behind[0].strip() if behind else lines[-1].strip()


def _remove_machinery(lines: Sequence[str]) -> list[str]:
    """Leave out frames of Spark and of this package, with the code below them."""
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
    found = _LOST_TASK.search(text)
    first = (found["cause"] if found else text).strip()
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
    """Leave out packages of Java, and the state, which says nothing to people."""
    short = _PACKAGE.sub("", _SQL_STATE.sub(" ", line).strip())
    return _PLAIN.sub("", short).strip()
