"""The end of a journal: its last tick, and counts of restarts, failures and late rows."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.engines.event_json import event_from_json
from penstock.engines.events import FailedEvent, LateEvent, RestartingEvent, RevivedEvent
from penstock.engines.port import IngestStatus
from penstock.errors import InputError
from penstock.runs.journal_parts import older_parts
from penstock.runs.run_directory import JOURNAL

#: Seconds between ticks where the header of a journal has none.
DEFAULT_INTERVAL_S = 15.0
#: What a line of another form raises.
_DAMAGED = (KeyError, TypeError, ValueError, AttributeError, InputError)
#: Events that `JournalTail` needs.
_EVENTS = (RestartingEvent, RevivedEvent, FailedEvent, LateEvent)
#: Lines that have no such events and are no resumption are not parsed.
_RESUMED, _ANY_EVENT = b'{"resumed"', b'"events":'
_WORDS = tuple(f'"{each.KIND}"'.encode() for each in _EVENTS)


@dataclass(frozen=True, slots=True, kw_only=True)
class LastTick:
    """The last tick of a journal, as far as `penstock status` needs it."""

    at: float
    #: By operator: replicas that the last decision wants, the requested and the running ones.
    wanted: Mapping[str, int]
    requested: Mapping[str, int]
    running: Mapping[str, int]
    dropped_records: int
    ingests: Mapping[str, IngestStatus]
    #: By chain: what was measured of its members.
    members: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)


@dataclass(slots=True)
class JournalTail:
    """The present state of a run according to its journal."""

    #: Time between two ticks.
    interval_s: float = DEFAULT_INTERVAL_S
    #: None before the first tick.
    tick: LastTick | None = None
    #: By operator: how often it was restarted, and why the last time.
    restarts: Counter[str] = field(default_factory=Counter)
    causes: dict[str, str] = field(default_factory=dict)
    #: By operator: its last failure that was followed by a restart.
    retries: dict[str, RestartingEvent] = field(default_factory=dict)
    #: By operator: rows that came after the watermark.
    late: Counter[str] = field(default_factory=Counter)
    #: By operator: why it failed since the last start of the run.
    failed: dict[str, str] = field(default_factory=dict)
    #: How often the run was resumed.
    resumes: int = 0
    #: Wall clock time of the last write; None without a journal.
    written_at: float | None = None


def read_tail(run: Path) -> JournalTail:
    """Read the journal of a run, which may be missing or cut short."""
    path, tail = run / JOURNAL, JournalTail()
    last = b""
    for line in _whole_lines(path):
        if line.startswith(b'{"version"'):  # each part has a header
            tail.interval_s = _interval_s(_parse(line))
            continue
        last = line
        if _is_counted(line):
            with suppress(*_DAMAGED):
                _count(tail, _parse(line))
    with suppress(*_DAMAGED):
        tail.tick = _last_tick(_parse(last))
    tail.written_at = path.stat().st_mtime if path.is_file() else None
    return tail


def _interval_s(header: Mapping[str, Any]) -> float:
    try:
        return float(header["run"]["interval_s"] or DEFAULT_INTERVAL_S)
    except _DAMAGED:
        return DEFAULT_INTERVAL_S


def _is_counted(line: bytes) -> bool:
    # most lines of a long journal have no events: one search instead of one for each word
    has_events = _ANY_EVENT in line and any(word in line for word in _WORDS)
    return has_events or line.startswith(_RESUMED)


def _last_tick(data: Mapping[str, Any]) -> LastTick | None:
    if "running" not in data:
        return None
    targets = data.get("decision", {}).get("targets", {})
    ingests = data.get("ingests", {})
    return LastTick(
        at=float(data["at"]),
        wanted={name: target["wanted"] for name, target in targets.items()},
        requested=dict(data.get("requested", {})),
        running=dict(data["running"]),
        dropped_records=int(data.get("records", {}).get("dropped", 0)),
        ingests={name: _ingest(status) for name, status in ingests.items()},
        members=_members(data.get("snapshot") or {}),
    )


def _members(snapshot: Mapping[str, Any]) -> dict[str, Sequence[Mapping[str, Any]]]:
    operators = snapshot.get("operators", {})
    return {name: op["members"] for name, op in operators.items() if "members" in op}


def _ingest(data: Mapping[str, Any]) -> IngestStatus:
    """Read a status; fields of a newer version are left out."""
    return IngestStatus(**{key: data[key] for key in IngestStatus._fields if key in data})


def _count(tail: JournalTail, data: Mapping[str, Any]) -> None:
    if "resumed" in data:
        tail.resumes += 1
        tail.failed.clear()
        tail.retries.clear()
    for event in map(event_from_json, data.get("events", ())):
        match event:
            case RestartingEvent() | RevivedEvent():
                tail.restarts[event.operator] += 1
                tail.causes[event.operator] = event.error
                if isinstance(event, RestartingEvent):
                    tail.retries[event.operator] = event
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
