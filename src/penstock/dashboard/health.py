"""The health of a run as JSON, in words: problems, missing measures, failures, drops, disk."""

import time
from collections.abc import Iterator
from typing import Any

from penstock.core.numbers import pretty
from penstock.dashboard.run_reader import RunReader
from penstock.engines.event_json import event_from_json
from penstock.engines.events import ControlEvent
from penstock.errors import PenstockError
from penstock.reports.event_text import describe_event
from penstock.runs.run_status import RunStatus, read_status

#: Events and errors that are listed, the newest.
_EVENTS, _ERRORS = 40, 10
#: Seconds for which a status holds: to add up the disk takes time.
_STATUS_S = 5.0


class HealthReader:
    """Reads the health of a run; what takes long is kept for some seconds."""

    def __init__(self) -> None:
        self._statuses: dict[str, tuple[float, RunStatus | None, str]] = {}

    def read(self, reader: RunReader) -> dict[str, Any]:
        """Return problems, warnings, counts and events."""
        # the status looks at the whole journal too: a page that is being built must not wait for it
        status, error = self._status(reader) if reader.is_complete else (None, "")
        problems = [*(status.problems if status else ()), *([error] if error else ())]
        with reader.open():
            warnings = [*(status.warnings if status else ()), *_journal_warnings(reader)]
            events = [*_events(reader)]
        return {
            "state": reader.state,
            "problems": problems,
            "warnings": warnings,
            "events": events,
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
    missing = sum(n for (_, why), n in columns.unchanged.items() if why == "metrics-missing")
    if missing:
        yield f"a measure was missing in {pretty(missing)} decisions about an operator"
    names = {
        "failed": "failures of operators or changes",
        "restart": "restarts of the pipeline",
        "restarting": "restarts of operators",
        "retried": "changes that were requested again",
        "gave-up": "changes that were given up",
        "late-tick": "ticks that came late",
        "dropped": "times records were dropped",
        "late": "times records came after the watermark",
        "slow-batch": "slow batches",
    }
    for kind, words in names.items():
        if count := columns.event_counts[kind]:
            yield f"{pretty(count)} {words}"
    dropped = columns.column("dropped")
    if len(dropped) and dropped[-1] > 0:
        yield f"{pretty(float(dropped[-1]))} records were dropped"
    for error, ticks in columns.errors.most_common(_ERRORS):
        yield f"{error} ({pretty(ticks)} ticks)"


def _events(reader: RunReader) -> Iterator[dict[str, Any]]:
    """Yield the newest events in words, the newest first."""
    shown = 0
    for event in reversed(reader.columns.events):
        try:
            read = event_from_json(event.data)
        except PenstockError:
            continue
        if text := describe_event(read):
            shown += 1
            yield {
                "at": read.at,
                "text": text,
                "tick": event.tick,
                "is_request": isinstance(read, ControlEvent),
            }
        if shown >= _EVENTS:
            return
