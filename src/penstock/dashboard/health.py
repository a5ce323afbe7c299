"""The health of a run as JSON, in words: problems, missing measures, failures, drops, disk."""

import math
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from penstock.core.numbers import pretty
from penstock.dashboard.run_reader import RunReader
from penstock.engines.event_json import event_from_json
from penstock.engines.events import ControlEvent
from penstock.errors import PenstockError
from penstock.reports.event_text import describe_event
from penstock.reports.run_warnings import list_warnings
from penstock.runs.run_columns import MAX_EVENTS
from penstock.runs.run_status import RunStatus, read_status

#: Events and errors that are listed, the newest.
_EVENTS, _ERRORS = 40, 10
#: Seconds for which a status holds: to add up the disk takes time.
_STATUS_S = 5.0


class HealthReader:
    """Reads the health of a run; what takes long is kept for some seconds."""

    def __init__(self) -> None:
        self._statuses: dict[str, tuple[float, RunStatus | None, str]] = {}

    def read(self, reader: RunReader, at: float | None = None) -> dict[str, Any]:
        """Return problems, warnings and counts as of the end, and the events up to a time."""
        # the status looks at the whole journal too: a page that is being built must not wait for it
        status, error = self._status(reader) if reader.is_complete else (None, "")
        problems = [*(status.problems if status else ()), *([error] if error else ())]
        with reader.open():
            warnings = [*(status.warnings if status else ()), *_journal_warnings(reader)]
            known = _events(reader, math.inf if at is None else at)
            events = [*islice(known, _EVENTS)]
            # the columns remember the newest events only
            is_cut = next(known, None) is not None or len(reader.columns.events) >= MAX_EVENTS
        return {
            "state": reader.state,
            "problems": problems,
            "warnings": warnings,
            "events": events,
            "events_until": at,
            "events_left_out": is_cut,
            "disk_bytes": dict(status.disk_bytes) if status else {},
            "operators": [
                {
                    "name": operator.name,
                    "restarts": operator.restarts,
                    "last_restart": operator.last_restart,
                    "late_rows": operator.late_rows,
                    "dead_letter_rows": operator.dead_letter_rows,
                    "error": operator.error,
                }
                for operator in (status.operators if status else ())
            ],
        }

    def _status(self, reader: RunReader) -> tuple[RunStatus | None, str]:
        name, now = str(reader.directory), time.monotonic()
        kept = self._statuses.get(name)
        if kept is None or now - kept[0] > _STATUS_S:
            try:
                kept = (now, read_status(reader.directory), "")
            except (PenstockError, OSError, ValueError, KeyError) as error:
                kept = (now, None, f"the status cannot be read: {error}")
            if len(self._statuses) > 50:
                self._statuses.clear()
            self._statuses[name] = kept
        return kept[1], kept[2]


def _journal_warnings(reader: RunReader) -> Iterator[str]:
    columns, index = reader.columns, reader.index
    if not reader.is_complete:
        yield f"{pretty(len(columns))} of {pretty(len(index))} ticks have been read so far"
    if index.damaged_lines:
        yield f"{index.damaged_lines} lines of the journal cannot be read"
    if reader.is_full:
        yield f"the journal is too long: only its first {pretty(len(columns))} ticks are shown"
    if index.begins_s:
        yield f"ticks before {pretty(index.begins_s)} s were removed to save space"
    yield from list_warnings(columns)
    for error, ticks in columns.errors.most_common(_ERRORS):
        yield f"{error} ({pretty(ticks)} ticks)"


def _events(reader: RunReader, until_s: float) -> Iterator[dict[str, Any]]:
    """Yield events in words up to a time, the newest first."""
    for event in reversed(reader.columns.events):
        try:
            read = event_from_json(event.data)
        except PenstockError:
            continue
        if read.at <= until_s and (text := describe_event(read)):
            yield {
                "at": read.at,
                "text": text,
                "tick": event.tick,
                "is_request": isinstance(read, ControlEvent),
            }
