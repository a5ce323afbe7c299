"""The journal of a run, append-only: a header, then one line per tick. Versions 1 and 2.

Everything that shows a run reads this file. Each line is flushed at once, so a killed process
loses at most the line that it was writing. A resumed run adds the line `{"resumed": {"at": ..}}`.

A large journal is split into parts: `journal.jsonl` is the newest, older ones are
`journal.000001.jsonl` and so on, and the oldest are removed. The header of a later part has
version 2 and carries the totals of all earlier parts. Readers read all parts as one journal.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from penstock.control.loop import Tick
from penstock.engines.events import Event, ResumedRunEvent
from penstock.errors import InputError
from penstock.files.text import is_file
from penstock.runs.journal_header import JournalHeader, check_header
from penstock.runs.journal_lines import (
    Entry,
    Header,
    Resumption,
    last_whole_line,
    parse_line,
    to_line,
)
from penstock.runs.journal_parts import DEFAULT_LIMITS, Limits, older_parts, part_path
from penstock.runs.tick_json import tick_to_json

VERSION = 2
_READABLE = (1, VERSION)


class JournalWriter:
    """Appends ticks to a journal, one line each."""

    def __init__(
        self,
        path: Path,
        header: JournalHeader,
        *,
        kept: int = 0,
        start_s: float = 0.0,
        part: int = 1,
        begins_s: float = 0.0,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        """Begin a journal, or continue one after its first `kept` bytes."""
        #: The time at which the run continues; 0 for a new run.
        self.start_s = start_s
        #: Returns the totals of all written ticks. Without it the journal is not split into parts.
        self.carry: Callable[[], Mapping[str, Any]] | None = None
        self._path, self._header, self._part, self._limits = path, dict(header), part, limits
        self._at, self._has_ticks = start_s, start_s > begins_s
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream: BinaryIO = path.open("r+b" if kept else "wb")
        if kept:
            self._stream.truncate(kept)
            self._stream.seek(kept)
            self._line({"resumed": {"at": start_s}})
        else:
            self._line({"version": 1, "run": self._header})

    @classmethod
    def resume(
        cls, path: Path, header: JournalHeader, limits: Limits = DEFAULT_LIMITS
    ) -> "JournalWriter":
        """Continue a journal after its last complete line.

        Damaged lines at the end are removed. A journal without a complete header starts again.
        """
        data = path.read_bytes() if path.is_file() else b""
        kept, last = last_whole_line(data)
        if not kept:
            if parts := older_parts(path):
                problem = "has no header, but there are older parts of this journal"
                hint = f"restore it from a backup, or rename {parts[-1].name} to {path.name}"
                raise InputError("", problem, hint, str(path))
            return cls(path, header, limits=limits)
        first = _header(iter([parse_line(data[: data.index(b"\n") + 1], path, 1)]), path)
        part_path(path, first.part).unlink(missing_ok=True)  # a second name, if a kill left one
        return cls(
            path,
            first.run,
            kept=kept,
            start_s=last.at,
            part=first.part,
            begins_s=first.begins_s,
            limits=limits,
        )

    def write(self, tick: Tick) -> None:
        """Append one tick."""
        is_full = self._stream.tell() > self._limits.part_bytes
        if self.carry is not None and is_full and self._has_ticks:
            self._begin_part(self.carry())
        self._line(tick_to_json(tick))
        self._at, self._has_ticks = tick.at, True

    def _begin_part(self, carried: Mapping[str, Any]) -> None:
        """Begin the next part: link the full one to its own name, then replace it atomically."""
        path = self._path
        part_path(path, self._part).hardlink_to(path)
        self._part, self._has_ticks = self._part + 1, False
        header = {"version": VERSION, "run": self._header, "part": self._part}
        temporary = path.with_name(f"{path.name}.tmp")
        with temporary.open("wb") as stream:
            stream.write(to_line({**header, "begins_s": self._at, "carried": carried}))
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
        self._stream.close()
        self._stream = path.open("ab")
        for number in range(self._part - 1 - self._limits.older_parts, 0, -1):
            if not part_path(path, number).exists():
                break
            part_path(path, number).unlink()

    def _line(self, data: Mapping[str, Any]) -> None:
        self._stream.write(to_line(data))
        self._stream.flush()

    def __enter__(self) -> "JournalWriter":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stream.close()


@dataclass(frozen=True, slots=True)
class Journal:
    """The content of a journal: its header and its ticks.

    The first tick after each resumption has a `ResumedRunEvent`.
    """

    #: The header.
    run: JournalHeader
    ticks: tuple[Tick, ...]
    #: Ticks before this time were removed to save space; 0 for a complete journal.
    begins_s: float = 0.0


def read_journal(path: Path, newest: int = 0) -> Journal:
    """Read all parts of a journal, or the `newest` ones.

    Damaged lines at the end are left out.
    """
    entries = _read([*_parts(path)][-newest:])
    header = _header(entries, path)
    return Journal(header.run, tuple(_ticks(entries)), header.begins_s)


def read_ticks(path: Path) -> Iterator[Tick]:
    """Iterate over the ticks of a journal without loading all of them."""
    entries = _read([*_parts(path)])
    _header(entries, path)
    return _ticks(entries)


def read_newest(path: Path) -> tuple[Mapping[str, Any] | None, Iterator[Tick]]:
    """Return the totals that the newest part carries, and the ticks of that part."""
    entries = _read([*_parts(path)][-1:])
    carried = _header(entries, path).carried
    return carried, _ticks(entries)


def read_recent(path: Path) -> Iterator[Tick]:
    """Read the ticks of the newest part and the one before."""
    entries = _read([*_parts(path)][-2:])
    _header(entries, path)
    return _ticks(entries)


def _parts(path: Path) -> Iterator[Path]:
    """Oldest first."""
    if not is_file(path):
        raise InputError("", "there is no such journal", where=str(path))
    for part in older_parts(path):
        if not part.samefile(path):  # two names of one file while a part is put aside
            yield part
    yield path


def _header(entries: Iterator[Entry], path: Path) -> Header:
    first = next(entries, None)
    if not isinstance(first, Header):
        problem = "is not a journal: its first line has no header"
        raise InputError("", problem, where=f"{path}:1")
    if first.version not in _READABLE:
        problem = f"cannot read version {first.version}, only {VERSION} and older ones"
        raise InputError("version", problem, where=f"{path}:1")
    check_header(first.run, f"{path}:1")
    return first


def _ticks(entries: Iterator[Entry]) -> Iterator[Tick]:
    resumed: tuple[Event, ...] = ()
    for entry in entries:
        if isinstance(entry, Resumption):
            resumed += (ResumedRunEvent(at=entry.at),)
        elif isinstance(entry, Tick):
            if resumed:
                events = resumed + entry.status.events
                entry = replace(entry, status=replace(entry.status, events=events))
                resumed = ()
            yield entry


def _read(parts: list[Path]) -> Iterator[Entry]:
    """Read lines; a damaged line is an error only if a complete one follows."""
    damage: InputError | None = None
    for part in parts:
        with part.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                try:
                    entry = parse_line(line, part, number)
                except InputError as error:
                    damage = damage or error
                    continue
                if damage is not None:
                    raise damage
                yield entry
