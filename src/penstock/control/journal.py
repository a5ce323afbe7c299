"""The append-only record of a run: a header, then one line a tick. Version 1.

Whatever shows a run reads this file; nothing holds a live object. Each line is handed to the
operating system at once, so a process that is killed has lost at most the line it was writing.
A run that goes on after that says so with one line, `{"resumed": {"at": ..}}`.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

from penstock.control.loop import Tick
from penstock.control.snapshots import parse_json
from penstock.control.ticks import tick_from_json, tick_to_json
from penstock.engines.port import Event
from penstock.errors import InputError

VERSION = 1


class JournalWriter:
    """Appends ticks to a file, one line each, as they happen."""

    def __init__(
        self, path: Path, header: Mapping[str, Any], *, kept: int = 0, start_s: float = 0.0
    ) -> None:
        """Begin a journal, or go on behind so many bytes of one."""
        #: Where the run goes on; 0 for one that begins.
        self.start_s = start_s
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream: BinaryIO = path.open("r+b" if kept else "wb")
        if kept:
            self._stream.truncate(kept)
            self._stream.seek(kept)
            self._line({"resumed": {"at": start_s}})
        else:
            self._line({"version": VERSION, "run": dict(header)})

    @classmethod
    def resume(cls, path: Path, header: Mapping[str, Any]) -> "JournalWriter":
        """Go on behind the last whole line of a journal, and with the time that stands there.

        One that was cut before its header was whole begins anew.
        """
        data = path.read_bytes() if path.is_file() else b""
        kept = data.rfind(b"\n") + 1
        start_s = _time_of(data[:kept].splitlines()[-1], path) if kept else 0.0
        return cls(path, header, kept=kept, start_s=start_s)

    def write(self, tick: Tick) -> None:
        """Append one tick."""
        self._line(tick_to_json(tick))

    def _line(self, data: Mapping[str, Any]) -> None:
        self._stream.write(_to_line(data))
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
    """A journal that was read: what was asked, and the ticks.

    The first tick after each resumption has an event `resumed-run`.
    """

    run: Mapping[str, Any]
    ticks: tuple[Tick, ...]


def read_journal(path: Path) -> Journal:
    """Read a journal; a last line that was cut short by a kill is left out."""
    lines = _lines(path)
    return Journal(_header(lines, path), tuple(_ticks(lines)))


def read_ticks(path: Path) -> Iterator[Tick]:
    """Read the ticks of a journal one after the other, however long it is."""
    lines = _lines(path)
    _header(lines, path)
    return _ticks(lines)


def _header(lines: Iterator[tuple[str, Any]], path: Path) -> Mapping[str, Any]:
    place, first = next(lines, (f"{path}:1", None))
    if not isinstance(first, Mapping) or "run" not in first:
        raise InputError("", "is not a journal: its first line has no header", where=place)
    if first.get("version") != VERSION:
        problem = f"cannot read version {first.get('version')}, only {VERSION}"
        raise InputError("version", problem, where=place)
    header: Mapping[str, Any] = first["run"]
    return header


def _ticks(lines: Iterator[tuple[str, Any]]) -> Iterator[Tick]:
    resumed: tuple[Event, ...] = ()
    for place, data in lines:
        try:
            if not isinstance(data, Mapping):
                raise InputError("", "is not a tick")
            if "resumed" in data:
                resumed += (Event(at=data["resumed"]["at"], kind="resumed-run"),)
                continue
            tick = tick_from_json(data)
        except KeyError as missing:
            raise InputError(str(missing).strip("'"), "missing", where=place) from None
        except InputError as error:
            raise error.at(place) from None
        if resumed:
            events = resumed + tick.status.events
            tick, resumed = replace(tick, status=replace(tick.status, events=events)), ()
        yield tick


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    if not path.is_file():
        raise InputError("", "there is no such journal", where=str(path))
    with path.open(encoding="utf-8", newline="\n") as stream:
        for number, line in enumerate(stream, start=1):
            if not line.endswith("\n"):
                return
            try:
                yield f"{path}:{number}", parse_json(line)
            except InputError as error:
                raise error.at(f"{path}:{number}") from None


def _time_of(line: bytes, path: Path) -> float:
    """When a journal that ends with this line was ended: its header is its beginning."""
    try:
        data = parse_json(line.decode())
    except (InputError, UnicodeDecodeError):
        raise InputError("", "its last line is not JSON", where=str(path)) from None
    at: float = data.get("resumed", data).get("at", 0.0)
    return at


def _to_line(data: Mapping[str, Any]) -> bytes:
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        text = json.dumps(_plain(data), separators=(",", ":"))
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    """What JSON has no form for, such as a policy's NumPy numbers, in the nearest that it has."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)
