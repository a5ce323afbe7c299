"""The append-only record of a run: a header, then one line a tick. Version 1.

Whatever shows a run reads this file; nothing holds a live object.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, TextIO

from penstock.control.loop import Tick
from penstock.control.snapshots import parse_json
from penstock.core.decision import Decision
from penstock.core.frozen import FrozenDict
from penstock.core.histogram import Histogram
from penstock.core.reading import parse_snapshot, snapshot_to_json
from penstock.engines.port import Event, Status
from penstock.errors import InputError

VERSION = 1


def tick_to_json(tick: Tick) -> dict[str, Any]:
    """Write a tick as plain dictionaries; what is empty is left out."""
    status = tick.status
    data: dict[str, Any] = {
        "at": tick.at,
        "running": dict(status.running),
        "requested": dict(status.requested),
        "records": {
            "offered": status.offered_records,
            "processed": status.processed_records,
            "dropped": status.dropped_records,
            "backlog": status.backlog_records,
        },
        "replica_s": {name: round(s, 3) for name, s in status.replica_s.items()},
    }
    if status.executors is not None:
        data["executors"] = status.executors
    if status.age_s is not None:
        data["age_s"] = round(status.age_s, 6)
    if status.pause_s:
        data["pause_s"] = status.pause_s
    if status.latency:
        data["latency"] = {path: h.to_json() for path, h in status.latency.items()}
    if status.events:
        data["events"] = [_event_to_json(event) for event in status.events]
    if tick.snapshot is not None:
        data["snapshot"] = snapshot_to_json(tick.snapshot)
    if tick.decision is not None:
        data["decision"] = tick.decision.to_json(with_numbers=True)
        data["applied"] = tick.applied
        if tick.decision.is_change and tick.snapshot is not None:
            data["expected"] = _expected(tick)
    if tick.error:
        data["error"] = tick.error
    return data


def tick_from_json(data: Mapping[str, Any]) -> Tick:
    """Read what `tick_to_json` wrote."""
    records = data["records"]
    status = Status(
        at=data["at"],
        requested=FrozenDict(data["requested"]),
        running=FrozenDict(data["running"]),
        executors=data.get("executors"),
        latency=FrozenDict(
            {path: Histogram.from_json(h) for path, h in data.get("latency", {}).items()}
        ),
        age_s=data.get("age_s"),
        pause_s=data.get("pause_s", 0.0),
        replica_s=FrozenDict(data["replica_s"]),
        events=tuple(_event_from_json(event) for event in data.get("events", ())),
        offered_records=records["offered"],
        processed_records=records["processed"],
        dropped_records=records["dropped"],
        backlog_records=records["backlog"],
    )
    return Tick(
        at=data["at"],
        status=status,
        snapshot=parse_snapshot(data["snapshot"]) if "snapshot" in data else None,
        decision=Decision.from_json(data["decision"]) if "decision" in data else None,
        applied=data.get("applied", False),
        error=data.get("error", ""),
    )


class JournalWriter:
    """Appends ticks to a file, one line each, as they happen."""

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream: TextIO = path.open("w", encoding="utf-8")
        self._line({"version": VERSION, "run": dict(header)})

    def write(self, tick: Tick) -> None:
        """Append one tick."""
        self._line(tick_to_json(tick))

    def _line(self, data: Mapping[str, Any]) -> None:
        self._stream.write(json.dumps(data, separators=(",", ":")) + "\n")

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
    """A journal that was read: what was asked, and the ticks."""

    run: Mapping[str, Any]
    ticks: tuple[Tick, ...]


def read_journal(path: Path) -> Journal:
    """Read a journal; a last line that was cut short by a kill is left out."""
    lines = _lines(path)
    place, first = next(lines, (f"{path}:1", None))
    if not isinstance(first, Mapping) or "run" not in first:
        raise InputError("", "is not a journal: its first line has no header", where=place)
    if first.get("version") != VERSION:
        problem = f"cannot read version {first.get('version')}, only {VERSION}"
        raise InputError("version", problem, where=place)
    ticks = []
    for place, data in lines:
        try:
            ticks.append(tick_from_json(data))
        except KeyError as missing:
            raise InputError(str(missing).strip("'"), "missing", where=place) from None
        except InputError as error:
            raise error.at(place) from None
    return Journal(first["run"], tuple(ticks))


def _lines(path: Path) -> Iterator[tuple[str, Any]]:
    if not path.is_file():
        raise InputError("", "there is no such journal", where=str(path))
    text = path.read_text(encoding="utf-8")
    for number, line in enumerate(text.splitlines(keepends=True), start=1):
        if not line.endswith("\n"):
            return
        try:
            yield f"{path}:{number}", parse_json(line)
        except InputError as error:
            raise error.at(f"{path}:{number}") from None


def _expected(tick: Tick) -> dict[str, float]:
    """Records/s that each changed operator should carry afterwards, where that is known."""
    expected = {}
    if tick.decision is not None and tick.snapshot is not None:
        for name, wanted in tick.decision.changes.items():
            capacity = tick.snapshot.operators[name].replica_capacity
            if capacity is not None:
                expected[name] = round(capacity * wanted, 3)
    return expected


def _event_to_json(event: Event) -> dict[str, Any]:
    data: dict[str, Any] = {"at": event.at, "kind": event.kind}
    if event.operator:
        data["operator"] = event.operator
    return data | dict(event.numbers)


def _event_from_json(data: Mapping[str, Any]) -> Event:
    known = ("at", "kind", "operator")
    numbers = FrozenDict({key: value for key, value in data.items() if key not in known})
    return Event(
        at=data["at"], kind=data["kind"], operator=data.get("operator", ""), numbers=numbers
    )
