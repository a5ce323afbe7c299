"""Why an operator stopped: the rows it was working on and the user's own traceback."""

import re
import sys
import traceback
from dataclasses import asdict, dataclass, replace

from penstock.engines.spark.run_layout import RunLayout, read_json, write_json
from penstock.errors import InputError

#: A frame of a traceback.
_FRAME = re.compile(r'^\s*File "(.*)", line (\d+)', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """An operator's function failed on rows [first, end) of a topic."""

    topic: str
    first: int
    end: int
    trace: str
    #: How often in a row, on the same rows and in the same way.
    times: int = 1
    #: What was wrong, in one line; else the last line of the traceback says it.
    problem: str = ""

    def text(self, operator: str) -> str:
        """Say it to a person."""
        head = f"{operator} failed on {format_rows(self.topic, self.first, self.end)}:"
        return "\n".join(part for part in (head, self.problem, self.trace) if part)

    def is_like(self, other: "Failure") -> bool:
        """Whether both are the same exception, from the same place, on the same rows."""
        same_rows = (self.topic, self.first, self.end) == (other.topic, other.first, other.end)
        return same_rows and make_signature(self.trace) == make_signature(other.trace)


def format_rows(topic: str, first: int, end: int) -> str:
    """Name rows of a topic.

    >>> format_rows("orders", 7, 8), format_rows("orders", 7, 12)
    ('row 7 of topic orders', 'rows 7 to 11 of topic orders')
    """
    rows = f"row {first}" if end == first + 1 else f"rows {first} to {end - 1}"
    return f"{rows} of topic {topic}"


def make_signature(trace: str) -> tuple[str, str]:
    """Return what makes two tracebacks the same: where it was raised, and the kind of exception.

    Messages may differ: they name times, addresses, requests.
    """
    frames = _FRAME.findall(trace)
    last = trace.strip().rpartition("\n")[2]
    return ":".join(frames[-1]) if frames else "", last.partition(":")[0]


def format_trace() -> str:
    """Return the traceback of the exception that is being handled.

    An `InputError` says itself where in the user's code the mistake is; our own frames do not.
    """
    error = sys.exc_info()[1]
    return str(error) if isinstance(error, InputError) else traceback.format_exc().rstrip()


def save(layout: RunLayout, operator: str, failure: Failure) -> None:
    """Leave word for the driver; the same failure again is counted."""
    before = load(layout, operator)
    if before is not None and before.is_like(failure):
        failure = replace(failure, times=before.times + 1)
    write_json(layout.error(operator), asdict(failure))


def load(layout: RunLayout, operator: str) -> Failure | None:
    """Read what a task left; None if there is nothing."""
    data = read_json(layout.error(operator), "remove it")
    return Failure(**data) if data else None


def clear(layout: RunLayout, operator: str) -> None:
    """A new start: nothing has failed yet."""
    layout.error(operator).unlink(missing_ok=True)
