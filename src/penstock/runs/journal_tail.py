"""The end of a journal, and what happened on the way there, without reading every tick."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.engines.event_json import event_from_json
from penstock.engines.events import FailedEvent, LateEvent, RestartingEvent, RevivedEvent
from penstock.runs.journal_parts import older_parts
from penstock.runs.run_directory import JOURNAL

#: Events that `JournalTail` needs.
_EVENTS = (RestartingEvent, RevivedEvent, FailedEvent, LateEvent)
#: Lines without any of these words are not parsed.
_WORDS = tuple(f'"{word}"'.encode() for word in (*(each.KIND for each in _EVENTS), "resumed"))


@dataclass(slots=True)
class JournalTail:
    """What the journal of a run says of now."""

    header: Mapping[str, Any] = field(default_factory=dict)
    #: The last tick as the journal has it; empty if there is none.
    tick: Mapping[str, Any] = field(default_factory=dict)
    #: By operator: how often it was started again, and why the last time.
    restarts: Counter[str] = field(default_factory=Counter)
    causes: dict[str, str] = field(default_factory=dict)
    #: By operator: rows that came after the watermark.
    late: Counter[str] = field(default_factory=Counter)
    #: By operator: why it failed since the run was started last.
    failed: dict[str, str] = field(default_factory=dict)
    #: How often the run was resumed.
    resumes: int = 0
    #: Wall clock at which it was written last; None if there is none.
    written_at: float | None = None

    @property
    def interval_s(self) -> float:
        """Time between two ticks."""
        return float(self.header.get("interval_s") or 15.0)

    @property
    def wanted(self) -> Mapping[str, int]:
        """By operator: replicas that the last decision wants."""
        targets = self.tick.get("decision", {}).get("targets", {})
        return {name: target["wanted"] for name, target in targets.items()}


def read_tail(run: Path) -> JournalTail:
    """Read the journal of a run; one that is not there, or is cut short, tells what it can."""
    path, tail = run / JOURNAL, JournalTail()
    last = b""
    for line in _whole_lines(path):
        if line.startswith(b'{"version"'):  # each part has a header
            tail.header = _parse(line).get("run", {})
            continue
        last = line
        if any(word in line for word in _WORDS):
            _count(tail, _parse(line))
    tail.tick = {key: value for key, value in _parse(last).items() if key not in ("run", "resumed")}
    tail.tick = tail.tick if "running" in tail.tick else {}
    tail.written_at = path.stat().st_mtime if path.is_file() else None
    return tail


def _count(tail: JournalTail, data: Mapping[str, Any]) -> None:
    if "resumed" in data:
        tail.resumes += 1
        tail.failed.clear()
    for event in map(event_from_json, data.get("events", ())):
        match event:
            case RestartingEvent() | RevivedEvent():
                tail.restarts[event.operator] += 1
                tail.causes[event.operator] = event.error
            case LateEvent():
                tail.late[event.operator] += event.records
            case FailedEvent() if event.operator:
                tail.failed[event.operator] = event.error


def _whole_lines(path: Path) -> Iterator[bytes]:
    for part in [*older_parts(path), path]:
        if part.is_file():
            with part.open("rb") as stream:
                yield from (line for line in stream if line.endswith(b"\n"))


def _parse(line: bytes) -> Mapping[str, Any]:
    try:
        data = json.loads(line)
    except ValueError:
        return {}
    return data if isinstance(data, dict) else {}
