"""Failures of an operator's function: the rows it was given, and the user's traceback."""

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
    """An operator's function failed on rows [first, end) of a topic; an ingest reads none."""

    topic: str
    first: int
    end: int
    trace: str
    #: How often in a row the same failure occurred on the same rows.
    times: int = 1
    #: The problem in one line; empty if the last line of the traceback says it.
    problem: str = ""
    #: The member of a chain that failed; empty for the operator itself.
    member: str = ""

    def text(self, operator: str) -> str:
        """Return the message for people."""
        rows = f" on {format_rows(self.topic, self.first, self.end)}" if self.topic else ""
        name = f"{self.member}, in the chain of {operator}," if self.member else operator
        head = f"{name} failed{rows}:"
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
    """Return the last frame and the kind of exception, which identify a traceback.

    Messages are left out: they contain times, addresses, requests.
    """
    frames = _FRAME.findall(trace)
    last = trace.strip().rpartition("\n")[2]
    return ":".join(frames[-1]) if frames else "", last.partition(":")[0]


def format_trace() -> str:
    """Return the traceback of the exception that is being handled.

    An `InputError` names the place in the user's code; frames of Penstock do not help.
    """
    error = sys.exc_info()[1]
    return str(error) if isinstance(error, InputError) else traceback.format_exc().rstrip()


def save(layout: RunLayout, operator: str, failure: Failure) -> None:
    """Write a failure for the driver; an equal failure increases the count."""
    before = load(layout, operator)
    if before is not None and before.is_like(failure):
        failure = replace(failure, times=before.times + 1)
    write_json(layout.error(operator), asdict(failure))


def load(layout: RunLayout, operator: str) -> Failure | None:
    """Read the failure that a task saved; None if there is none."""
    data = read_json(layout.error(operator), "remove it")
    return Failure(**data) if data else None


def clear(layout: RunLayout, operator: str) -> None:
    """Remove the saved failure."""
    layout.error(operator).unlink(missing_ok=True)
