"""Lines of a journal: parses and writes headers, resumptions and ticks."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from penstock.control.loop import Tick
from penstock.errors import InputError
from penstock.runs.journal_header import JournalHeader
from penstock.runs.snapshot_lines import parse_json
from penstock.runs.tick_json import tick_from_json

_WRONG = (KeyError, TypeError, ValueError, AttributeError, IndexError)


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a part."""

    run: JournalHeader
    version: Any
    part: int = 1
    #: The time of the run at which the part begins, and the totals of all earlier parts.
    begins_s: float = 0.0
    carried: Mapping[str, Any] | None = None

    @property
    def at(self) -> float:
        """The time of the run at which the part begins."""
        return self.begins_s


@dataclass(frozen=True, slots=True)
class Resumption:
    """A line that marks the resumption of a run."""

    at: float


Entry = Header | Resumption | Tick


def parse_line(line: bytes, path: Path, number: int) -> Entry:
    """Parse one line; `InputError` names its file, line and problem."""
    try:
        return _entry(line)
    except KeyError as missing:
        problem = InputError(str(missing).strip("'"), "missing")
    except InputError as error:
        problem = error
    except _WRONG as error:
        problem = InputError("", f"is not a line of a journal: {error}")
    hint = problem.hint or "restore the file from a backup, or remove the line"
    where = f"{path}:{number}"
    raise InputError(problem.field, problem.problem, hint, where) from None


def _entry(line: bytes) -> Entry:
    if not line.endswith(b"\n"):
        raise InputError("", "is cut short")
    try:
        data = parse_json(line.decode())
    except UnicodeDecodeError:
        raise InputError("", "is not UTF-8") from None
    if not isinstance(data, Mapping):
        raise InputError("", "is not a tick")
    if "run" in data:
        fields = {key: data[key] for key in ("part", "begins_s", "carried") if key in data}
        return Header(data["run"], data.get("version"), **fields)
    if "resumed" in data:
        return Resumption(float(data["resumed"]["at"]))
    return tick_from_json(data)


def last_whole_line(data: bytes) -> tuple[int, Entry]:
    """Return the bytes up to the end of the last complete line, and its entry; 0 for none."""
    end = data.rfind(b"\n") + 1
    while end:
        begin = data.rfind(b"\n", 0, end - 1) + 1
        try:
            return end, parse_line(data[begin:end], Path(), 0)
        except InputError:
            end = begin
    return 0, Resumption(0.0)


def to_line(data: Mapping[str, Any]) -> bytes:
    """Write one line."""
    try:
        text = json.dumps(data, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError):
        text = json.dumps(_plain(data), separators=(",", ":"))
    return text.encode() + b"\n"


def _plain(value: Any) -> Any:
    """Convert values that JSON cannot hold, such as a policy's NumPy numbers, to plain ones."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, str | int):
        return value
    return _plain(value.tolist()) if hasattr(value, "tolist") else str(value)
