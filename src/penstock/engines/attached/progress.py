"""The progress that Spark reports for one trigger of a streaming query. Pure.

Everything is optional in a report: fields are missing, null, text in place of a number, or -1 for
unknown. What cannot be read is None, never 0.
"""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from penstock.core.frozen_dict import FrozenDict


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceProgress:
    """One source of a query in one trigger. Offsets are what their JSON says."""

    description: str = ""
    #: Rows that the batch read; None if the report has none.
    rows: int | None = None
    start: Any = None
    end: Any = None
    #: What could be read when the batch was planned; None for sources that do not report it.
    latest: Any = None
    metrics: Mapping[str, Any] = field(default_factory=FrozenDict)


@dataclass(frozen=True, slots=True, kw_only=True)
class StateProgress:
    """All stateful operators of a query together, after one batch."""

    rows: int = 0
    memory_bytes: int = 0
    #: Seconds of all tasks for updates, removals and commits of the state.
    update_s: float = 0.0
    removal_s: float = 0.0
    commit_s: float = 0.0
    #: Partitions of the state; None if not reported.
    partitions: int | None = None
    late_rows: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryProgress:
    """One trigger of a query."""

    run_id: str = ""
    batch: int
    #: Wall clock at which the trigger began, in seconds since 1970.
    started_at: float
    #: Seconds of each step, such as addBatch; triggerExecution is the whole.
    durations: Mapping[str, float] = field(default_factory=FrozenDict)
    sources: tuple[SourceProgress, ...] = ()
    state: StateProgress | None = None

    @property
    def duration_s(self) -> float:
        """Seconds of the whole trigger; the sum of its steps if the report has no whole."""
        whole = self.durations.get("triggerExecution")
        return sum(self.durations.values()) if whole is None else whole

    @property
    def work_s(self) -> float | None:
        """Seconds in which tasks ran and the sink wrote; None if no batch ran."""
        return self.durations.get("addBatch")

    @property
    def ended_at(self) -> float:
        """Wall clock at the end of the trigger."""
        return self.started_at + self.duration_s


def parse_progress(report: Any) -> QueryProgress | None:
    """Read a report of Spark, as `json` of a `StreamingQueryProgress` gives it.

    None if it has no batch or no time, so that nothing can be learnt from it.
    """
    if not isinstance(report, Mapping):
        return None
    batch, started_at = read_number(report.get("batchId")), _read_time(report.get("timestamp"))
    if batch is None or started_at is None:
        return None
    sources = report.get("sources")
    return QueryProgress(
        run_id=str(report.get("runId") or ""),
        batch=int(batch),
        started_at=started_at,
        durations=_read_durations(report.get("durationMs")),
        sources=tuple(map(_read_source, sources)) if isinstance(sources, list | tuple) else (),
        state=_read_state(report.get("stateOperators")),
    )


def read_number(value: Any) -> float | None:
    """Return a number, also one that is written as text; None for everything else.

    >>> read_number("12.5"), read_number(3), read_number("none"), read_number(None)
    (12.5, 3.0, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _read_count(value: Any) -> int | None:
    """Return a count; Spark writes -1 for one that it does not know."""
    number = read_number(value)
    return None if number is None or number < 0 else int(number)


def _read_time(value: Any) -> float | None:
    try:
        at = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _read_durations(value: Any) -> Mapping[str, float]:
    if not isinstance(value, Mapping):
        return FrozenDict()
    times = {str(step): _read_count(ms) for step, ms in value.items()}
    return FrozenDict({step: ms / 1000 for step, ms in times.items() if ms is not None})


def _read_source(value: Any) -> SourceProgress:
    if not isinstance(value, Mapping):
        return SourceProgress()
    metrics = value.get("metrics")
    return SourceProgress(
        description=str(value.get("description") or ""),
        rows=_read_count(value.get("numInputRows")),
        start=_read_offset(value.get("startOffset")),
        end=_read_offset(value.get("endOffset")),
        latest=_read_offset(value.get("latestOffset")),
        metrics=FrozenDict(metrics) if isinstance(metrics, Mapping) else FrozenDict(),
    )


def _read_offset(value: Any) -> Any:
    """Return an offset as an object; some reports have its JSON as text."""
    try:
        return json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None


def _read_state(value: Any) -> StateProgress | None:
    if not isinstance(value, list | tuple):
        return None
    operators = [operator for operator in value if isinstance(operator, Mapping)]
    if not operators:
        return None

    def total(key: str) -> int:
        return sum(_read_count(operator.get(key)) or 0 for operator in operators)

    partitions = [_read_count(operator.get("numShufflePartitions")) for operator in operators]
    return StateProgress(
        rows=total("numRowsTotal"),
        memory_bytes=total("memoryUsedBytes"),
        update_s=total("allUpdatesTimeMs") / 1000,
        removal_s=total("allRemovalsTimeMs") / 1000,
        commit_s=total("commitTimeMs") / 1000,
        partitions=max((count for count in partitions if count), default=None),
        late_rows=total("numRowsDroppedByWatermark"),
    )
