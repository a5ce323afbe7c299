"""Marks the rows that a worker processes, so that its death can be explained.

A worker that is killed, or that calls `os._exit`, reports nothing. Before each call of a user's
function the task writes its rows into a small file; the file is emptied when the task ends. A
file with content belongs to a call in progress, or to one in which the process died.
"""

import faulthandler
import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from penstock.engines.spark.run_layout import RunLayout


@dataclass(frozen=True, slots=True, kw_only=True)
class CallMark:
    """A call of a function on rows [first, end) of a topic."""

    topic: str
    first: int
    end: int
    #: Wall clock at which the call began.
    began_at: float
    #: Processes that died before on overlapping rows.
    deaths: int = 0
    #: Rows that the function does not get any more: topic, offset, problem.
    poison: tuple[tuple[str, int, str], ...] = ()
    #: The member of a chain that was called; empty for the operator itself.
    member: str = ""

    def overlaps(self, topic: str, first: int, end: int) -> bool:
        """Whether it has a row in common with a range."""
        return self.topic == topic and self.first < end and first < self.end


class CallMarker:
    """The mark of one task. Used as a context: the mark is cleared when the task ends."""

    def __init__(
        self, layout: RunLayout, operator: str, task: int, timeout_s: float | None
    ) -> None:
        directory = layout.marks(operator)
        directory.mkdir(parents=True, exist_ok=True)
        #: Calls that were not finished when this task began.
        self._before = tuple(read_marks(layout, operator))
        stack = directory / f"{task}.stack"
        self._poison = _find_poison(self._before, describe_death(_read_text(stack), timeout_s))
        self._file = os.open(directory / f"{task}.json", os.O_RDWR | os.O_CREAT, 0o600)
        self._mark: dict[str, Any] = {}
        self._timeout_s = timeout_s
        self._stack = stack.open("w", encoding="utf-8") if timeout_s is not None else None

    def deaths(self, topic: str, first: int, end: int) -> int:
        """Return how many processes died on rows of this range."""
        return count_deaths(self._before, topic, first, end)

    def poison(self, topic: str, offset: int) -> str:
        """Return the repeated problem of a row; empty if the row may be tried."""
        return self._poison.get((topic, offset), "")

    def is_suspect(self, topic: str, first: int, end: int) -> bool:
        """Whether a process died on rows of this range, so that they are tried one by one."""
        known = any(name == topic and first <= row < end for name, row in self._poison)
        return known or self.deaths(topic, first, end) > 0

    def enter(self, topic: str, first: int, end: int) -> None:
        """Mark the rows of the next call."""
        mark = {
            "topic": topic,
            "first": first,
            "end": end,
            "began_at": time.time(),
            "deaths": self.deaths(topic, first, end),
            "poison": [(name, row, problem) for (name, row), problem in self._poison.items()],
        }
        self._write(mark)

    def enter_member(self, member: str) -> None:
        """Mark that a member of the chain gets what became of these rows; "" is the first one."""
        if self._mark.get("member", "") != member:
            self._write({**self._mark, "member": member, "began_at": time.time()})

    def _write(self, mark: dict[str, Any]) -> None:
        self._mark = mark
        data = json.dumps(mark).encode()
        os.pwrite(self._file, data, 0)
        os.ftruncate(self._file, len(data))

    @contextmanager
    def limit(self) -> Iterator[None]:
        """End the process if the block takes longer than the time-out."""
        if self._timeout_s is None or self._stack is None:
            yield
            return
        # a C thread that needs no interpreter lock, so it also ends a loop in C
        faulthandler.dump_traceback_later(self._timeout_s, exit=True, file=self._stack)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()

    def __enter__(self) -> "CallMarker":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.ftruncate(self._file, 0)
        os.close(self._file)
        if self._stack is not None:
            self._stack.close()


def read_marks(layout: RunLayout, operator: str) -> list[CallMark]:
    """Return the calls that have not finished."""
    texts = (_read_text(path) for path in sorted(layout.marks(operator).glob("[0-9]*.json")))
    return [mark for text in texts if (mark := _parse(text)) is not None]


def count_deaths(marks: Iterable[CallMark], topic: str, first: int, end: int) -> int:
    """Count the processes that died on rows of a range; calls in progress have other rows."""
    hits = [mark.deaths + 1 for mark in marks if mark.overlaps(topic, first, end)]
    return max(hits, default=0)


def find_deadliest(marks: Iterable[CallMark]) -> CallMark | None:
    """Return the call on whose rows most processes died; None without calls."""
    return max(marks, key=lambda mark: mark.deaths, default=None)


def read_stack(layout: RunLayout, operator: str) -> str:
    """Return the stack of the last call that took too long; empty if there is none."""
    texts = (_read_text(path) for path in layout.marks(operator).glob("*.stack"))
    return max(texts, key=len, default="").strip()


def clear_marks(layout: RunLayout, operator: str) -> None:
    """Remove all marks, at a start or after a batch."""
    for path in layout.marks(operator).glob("*"):
        if path.stat().st_size:
            path.unlink(missing_ok=True)


def describe_death(stack: str, timeout_s: float | None) -> str:
    """Return how a process ended in a call, from the stack that it wrote."""
    if stack.startswith("Timeout") and timeout_s is not None:
        return f"the call took longer than {timeout_s:g} s"
    return "the worker process died"


def _find_poison(marks: Iterable[CallMark], problem: str) -> dict[tuple[str, int], str]:
    """Return the rows on which a process died twice, and the known ones."""
    known = {(name, row): text for mark in marks for name, row, text in mark.poison}
    twice = (mark for mark in marks if mark.end == mark.first + 1 and mark.deaths > 0)
    return {(mark.topic, mark.first): _name_member(problem, mark) for mark in twice} | known


def _name_member(problem: str, mark: CallMark) -> str:
    return f"{problem} in {mark.member}" if mark.member else problem


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""


def _parse(text: str) -> CallMark | None:
    """Read a mark; None if it is empty or being written."""
    try:
        data: Mapping[str, Any] = json.loads(text) if text else {}
        poison = tuple((name, row, problem) for name, row, problem in data.get("poison", ()))
        return CallMark(**{**data, "poison": poison}) if data else None
    except (ValueError, TypeError):
        return None
