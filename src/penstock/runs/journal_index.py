"""An index of a journal by tick: where each line begins, in all parts, as the file grows.

The index holds sixteen bytes per tick and reads a tick only when it is asked for, so a page that
shows a run of weeks needs neither its ticks in memory nor a second pass over the file. Times are
kept because every look into a file lets other threads run first: a search by time must not wait
behind a thread that reads a long journal.
"""

import json
import math
import os
from array import array
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.control.loop import Tick
from penstock.errors import InputError
from penstock.runs.journal_header import JournalHeader
from penstock.runs.journal_parts import older_parts
from penstock.runs.tick_json import tick_from_json

_CHUNK_BYTES = 4 << 20
_HEADER, _RESUMED, _TICK = b'{"version"', b'{"resumed"', b'{"at":'
#: The first bytes of a part tell it from another one that got the same inode.
_MARK_BYTES = 256
#: The longest number that is read as a time.
_TIME_BYTES = 40


@dataclass(slots=True)
class _Part:
    """One file of a journal."""

    path: Path
    inode: int
    mark: bytes = b""
    #: Bytes that were indexed; they end with a complete line.
    size: int = 0
    #: The offset of each tick.
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    #: The time of each tick; that of the tick before it if its own cannot be read.
    times: "array[float]" = field(default_factory=lambda: array("d"))
    #: Ticks before each resumption of the run.
    resumptions: list[int] = field(default_factory=list)
    #: Complete lines that are no lines of a journal.
    damaged: int = 0
    header: Mapping[str, Any] = field(default_factory=dict)


class JournalIndex:
    """The ticks of a journal by their number; `refresh` adds what was written since."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._parts: list[_Part] = []
        #: The number of the first tick of each part.
        self._starts: list[int] = []
        #: Changes when the numbers of earlier ticks change: a part was removed or rewritten.
        self.generation = 0

    def __len__(self) -> int:
        return self._starts[-1] + len(self._parts[-1].offsets) if self._parts else 0

    @property
    def header(self) -> JournalHeader:
        """The header of the run; empty while there is none."""
        header = self._parts[0].header if self._parts else {}
        run = header.get("run", {})
        return run if isinstance(run, dict) else {}  # type: ignore[return-value]

    @property
    def begins_s(self) -> float:
        """The time before which ticks were removed to save space; 0 for a complete journal."""
        begins_s = self._parts[0].header.get("begins_s", 0.0) if self._parts else 0.0
        return float(begins_s)

    @property
    def damaged_lines(self) -> int:
        """Complete lines that cannot be read."""
        return sum(part.damaged for part in self._parts)

    @property
    def resumptions(self) -> list[int]:
        """The number of the first tick after each resumption of the run."""
        pairs = zip(self._starts, self._parts, strict=True)
        return [start + number for start, part in pairs for number in part.resumptions]

    def refresh(self) -> bool:
        """Index what was written since the last call; whether there is anything new."""
        before = (self.generation, len(self))
        known = {part.inode: part for part in self._parts}
        parts = []
        for path in self._files():
            try:
                part = _read_on(path, known)
            except OSError:  # removed at this moment
                continue
            if part is not None:
                parts.append(part)
        kept = [part.inode for part in parts[: len(self._parts)]]
        if kept != [part.inode for part in self._parts] or any(
            known.get(part.inode) not in (None, part) for part in parts
        ):
            self.generation += 1
        self._parts, self._starts, total = parts, [], 0
        for part in parts:
            self._starts.append(total)
            total += len(part.offsets)
        return (self.generation, total) != before

    def data(self, number: int) -> Mapping[str, Any]:
        """Read a tick as plain dictionaries; empty if its line is damaged or gone."""
        place = bisect_right(self._starts, number) - 1
        part = self._parts[place]
        try:
            with part.path.open("rb") as stream:
                if part.inode != os.fstat(stream.fileno()).st_ino:
                    return {}
                stream.seek(part.offsets[number - self._starts[place]])
                return _parse(stream.readline())
        except OSError:
            return {}

    def read(self, first: int, end: int) -> list[Mapping[str, Any]]:
        """Read consecutive ticks as plain dictionaries, a damaged one as an empty one."""
        ticks: list[Mapping[str, Any]] = []
        for start, part in zip(self._starts, self._parts, strict=True):
            begin, stop = max(first, start), min(end, start + len(part.offsets))
            if begin < stop:
                ticks += _read_lines(part, begin - start, stop - start)
        return ticks

    def tick(self, number: int) -> Tick | None:
        """Read a tick; None if its line is damaged or gone."""
        return read_tick(self.data(number))

    def find(self, at_s: float) -> int:
        """Return the number of the last tick at or before a time; 0 if all are later."""
        firsts = [part.times[0] if part.times else math.inf for part in self._parts]
        place = bisect_right(firsts, at_s) - 1
        if place < 0:
            return 0
        return max(0, self._starts[place] + bisect_right(self._parts[place].times, at_s) - 1)

    @property
    def end_s(self) -> float:
        """The time of the last tick; 0 while there is none."""
        return next((part.times[-1] for part in reversed(self._parts) if part.times), 0.0)

    def _files(self) -> list[Path]:
        files = [*older_parts(self._path), self._path]
        paths: dict[int, Path] = {}
        for path in files:  # a part that is put aside has two names for a moment
            try:
                paths[path.stat().st_ino] = path
            except OSError:
                continue
        return list(paths.values())


def read_tick(data: Mapping[str, Any]) -> Tick | None:
    """Read a tick from plain dictionaries; None if they are damaged."""
    try:
        return tick_from_json(data)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, InputError):
        return None


def _read_on(path: Path, known: Mapping[int, _Part]) -> _Part | None:
    """Index the rest of a file; a file that was replaced or cut short is indexed again."""
    with path.open("rb") as stream:
        inode = os.fstat(stream.fileno()).st_ino
        mark = stream.read(_MARK_BYTES)
        part = known.get(inode)
        size = stream.seek(0, 2)
        is_same = part is not None and size >= part.size and mark.startswith(part.mark)
        if part is None or not is_same:
            part = _Part(path, inode)
        part.path = path
        if not part.header and not mark.startswith(_HEADER):
            return part if part.size else None
        part.mark = mark if len(mark) == _MARK_BYTES else part.mark
        stream.seek(part.size)
        rest = b""
        while part.size + len(rest) < size:
            chunk = stream.read(_CHUNK_BYTES)
            if not chunk:
                break
            rest = _index(part, rest + chunk)
    return part


def _index(part: _Part, data: bytes) -> bytes:
    """Index the complete lines of some bytes; return the others."""
    begin = 0
    while (end := data.find(b"\n", begin)) >= 0:
        if data.startswith(_TICK, begin) and data[end - 1 : end] == b"}":
            part.offsets.append(part.size + begin)
            part.times.append(_read_time(data, begin, part.times[-1] if part.times else 0.0))
        elif data.startswith(_RESUMED, begin):
            part.resumptions.append(len(part.offsets))
        elif data.startswith(_HEADER, begin):
            part.header = _parse(data[begin : end + 1])
        else:
            part.damaged += 1
        begin = end + 1
    part.size += begin
    return data[begin:]


def _read_lines(part: _Part, first: int, end: int) -> list[Mapping[str, Any]]:
    begin = part.offsets[first]
    stop = part.offsets[end] if end < len(part.offsets) else part.size
    try:
        with part.path.open("rb") as stream:
            if part.inode != os.fstat(stream.fileno()).st_ino:
                return [{}] * (end - first)
            stream.seek(begin)
            data = stream.read(stop - begin)
    except OSError:
        return [{}] * (end - first)
    ticks = []
    for number in range(first, end):
        offset = part.offsets[number] - begin
        ticks.append(_parse(data[offset : data.find(b"\n", offset) + 1]))
    return ticks


def _parse(line: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _read_time(data: bytes, begin: int, last_s: float) -> float:
    """Read the time at the beginning of a line, without the rest; the last one if it is damaged."""
    begin += len(_TICK)
    try:
        at = float(data[begin : data.index(b",", begin, begin + _TIME_BYTES)])
    except ValueError:
        return last_s
    return at if at >= last_s else last_s
