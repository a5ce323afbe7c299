"""The numbers of all ticks of a run as columns, and what a run did: changes, reasons, events.

Columns hold four bytes per tick and number. `extend` takes new ticks only, so a live run is
followed at the cost of its new ticks.
"""

import math
from array import array
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from penstock.runs.journal_index import JournalIndex
from penstock.runs.tick_numbers import Column, tick_numbers

#: Events that are remembered, the newest.
MAX_EVENTS = 500
#: Columns beyond this are not kept: a damaged journal must not fill the memory.
MAX_COLUMNS = 4000
#: Events that are no news: other figures show them.
_QUIET_EVENTS = {"running", "step", "resumed"}


class RunEvent(NamedTuple):
    """An event of a run, with the number of the tick that reports it."""

    tick: int
    data: Mapping[str, Any]


class RunColumns:
    """Columns over the ticks of a run, in their order."""

    def __init__(self) -> None:
        self._times = array("d")
        self._columns: dict[Column, array[float]] = {}
        self._before: Mapping[str, Any] = {}
        #: Numbers of the ticks whose decision changes something, and whether it was applied.
        self.changes: list[tuple[int, bool]] = []
        #: Ticks without a change, by operator and reason.
        self.unchanged: Counter[tuple[str, str]] = Counter()
        #: Events by kind, and the newest ones.
        self.event_counts: Counter[str] = Counter()
        self.events: deque[RunEvent] = deque(maxlen=MAX_EVENTS)
        #: Ticks with an error, by its text.
        self.errors: Counter[str] = Counter()
        #: Number of the last tick with a snapshot; None before the first.
        self.last_measured: int | None = None
        #: Operators that feed each operator, by the last snapshot.
        self.upstream: dict[str, tuple[str, ...]] = {}

    def __len__(self) -> int:
        return len(self._times)

    @property
    def times(self) -> NDArray[np.float64]:
        """The time of each tick in seconds of the run."""
        # a copy: an array whose memory is shared could not grow
        return np.array(self._times, dtype=np.float64)

    @property
    def names(self) -> list[Column]:
        """The columns that there are."""
        return [*self._columns]

    @property
    def operators(self) -> list[str]:
        """Every operator with replicas, in the order of the first ticks."""
        return [name for measure, name in self._columns if measure == "running"]

    def column(self, measure: str, operator: str = "") -> NDArray[np.float32]:
        """Return a column; NaN where the number is unknown."""
        values = self._columns.get((measure, operator))
        if values is None:
            return np.full(len(self), np.nan, dtype=np.float32)
        missing = len(self) - len(values)
        known = np.array(values, dtype=np.float32)
        if not missing:
            return known
        return np.concatenate([known, np.full(missing, np.nan, dtype=np.float32)])

    def extend(self, ticks: Iterable[Mapping[str, Any]]) -> None:
        """Add ticks as the journal has them."""
        for data in ticks:
            self._add(data)

    def _add(self, data: Mapping[str, Any]) -> None:
        number, at = len(self._times), data.get("at")
        last = self._times[-1] if self._times else 0.0
        is_time = isinstance(at, int | float) and at >= last
        self._times.append(float(at) if is_time and at is not None else last)
        for key, value in tick_numbers(data, self._before).items():
            column = self._columns.get(key)
            if column is None:
                if len(self._columns) >= MAX_COLUMNS:
                    continue
                column = self._columns[key] = array("f")
            if len(column) < number:
                column.extend([math.nan] * (number - len(column)))
            column.append(_fit(value))
        self._note_decision(number, data)
        self._note_events(number, data)
        if isinstance(data.get("snapshot"), Mapping):
            self.last_measured = number
            self._note_graph(data["snapshot"])
        self._before = {"at": at, "records": data.get("records")} if is_time else self._before

    def _note_graph(self, snapshot: Mapping[str, Any]) -> None:
        operators = snapshot.get("operators")
        if isinstance(operators, Mapping):
            for name, measures in operators.items():
                if name not in self.upstream and isinstance(measures, Mapping):
                    feeders: Any = measures.get("upstream")
                    is_list = isinstance(feeders, list)
                    self.upstream[name] = tuple(map(str, feeders)) if is_list else ()

    def _note_decision(self, number: int, data: Mapping[str, Any]) -> None:
        error = data.get("error")
        if isinstance(error, str) and error:
            self.errors[error] += 1
        decision = data.get("decision")
        if not isinstance(decision, Mapping):
            return
        targets = decision.get("targets", {})
        for name, target in targets.items() if isinstance(targets, Mapping) else ():
            if isinstance(target, Mapping) and not _differs(target):
                reason = target.get("proposal_reason", target.get("reason", ""))
                guards = target.get("guards")
                held = f", held by {guards[-1].get('guard')}" if guards else ""
                self.unchanged[name, f"{reason}{held}"] += 1
        if is_change(data):
            self.changes.append((number, data.get("applied") is True))

    def _note_events(self, number: int, data: Mapping[str, Any]) -> None:
        events = data.get("events", ())
        for event in events if isinstance(events, list) else ():
            if isinstance(event, Mapping) and isinstance(event.get("kind"), str):
                self.event_counts[event["kind"]] += 1
                if event["kind"] not in _QUIET_EVENTS:
                    self.events.append(RunEvent(number, event))


def read_columns(index: JournalIndex, step: int = 2000) -> RunColumns:
    """Read all ticks of an index."""
    columns = RunColumns()
    for first in range(0, len(index), step):
        columns.extend(index.read(first, first + step))
    return columns


def is_change(data: Mapping[str, Any]) -> bool:
    """Whether the decision of a tick changes replicas, hosts or the place of slices."""
    decision = data.get("decision")
    if not isinstance(decision, Mapping):
        return False
    targets = decision.get("targets", {})
    values = targets.values() if isinstance(targets, Mapping) else ()
    return (
        bool(decision.get("moves"))
        or _differs(decision.get("hosts"))
        or any(_differs(target) for target in values)
    )


def _differs(target: object) -> bool:
    return isinstance(target, Mapping) and target.get("wanted") != target.get("current")


def _fit(value: float) -> float:
    """Return a value that four bytes can hold."""
    return value if -3e38 < value < 3e38 else math.nan
