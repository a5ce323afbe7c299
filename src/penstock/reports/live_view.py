"""The live view of a run: queue and replicas of every operator, and the last decisions.

It returns lines of text; `Screen` prints them.
"""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from penstock.control.execution import waiting_operators
from penstock.control.loop import Tick
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.engines.events import (
    BehindEvent,
    CaughtUpEvent,
    ExecutorLostEvent,
    ExecutorsReadyEvent,
    ExecutorsRequestedEvent,
    LateEvent,
)
from penstock.reports.event_text import (
    explain_change,
    explain_executors,
    explain_ingest,
    explain_late_rows,
)
from penstock.reports.progress import duration
from penstock.reports.text_charts import short, sparkline
from penstock.runs.observer import RunProgress

#: Maximum queue lengths and decisions that are remembered.
_QUEUES, _DECISIONS = 16, 6
_NAME, _BAR = 18, 24
_RUNNING, _REQUESTED, _LEAVING = "●", "○", "◌"
#: Maximum replicas that are drawn one by one.
_DOTS = 16


class LiveView:
    """Collects progress and ticks of a run, and draws them."""

    def __init__(self, title: str, objective_s: float | None = None) -> None:
        self._title, self._objective_s = title, objective_s
        self._progress: RunProgress | None = None
        self._snapshot: Snapshot | None = None
        self._queues: dict[str, deque[float]] = {}
        self._decisions: deque[str] = deque(maxlen=_DECISIONS)
        self.notice = ""

    def show_progress(self, progress: RunProgress) -> None:
        """Take the progress between two ticks."""
        self._progress = progress
        if progress.snapshot is None:
            return
        self._snapshot = progress.snapshot
        for name, op in progress.snapshot.operators.items():
            queue = self._queues.setdefault(name, deque(maxlen=_QUEUES))
            queue.append(op.queue or 0.0)

    def tick(self, tick: Tick) -> None:
        """Take one tick."""
        self._decisions.extend([*event_lines(tick), *decision_lines(tick)])

    def lines(self, width: int, height: int) -> list[str]:
        """Draw within a width and a height; the last line of a terminal stays free."""
        drawn = [self._headline(width)]
        if self._snapshot is not None:
            operators = list(self._snapshot.operators.values())
            shape = _Columns.of(width, operators)
            rows = [shape.row(op, self._queues[op.name]) for op in operators]
            room = max(1, height - len(drawn) - 4)
            if len(rows) > room:
                rows = [*rows[: room - 1], f"  ... and {len(rows) - room + 1} more"]
            drawn += ["", shape.head(), *rows]
        elif self._progress is not None and self._progress.queues:
            waiting = self._progress.queues.items()
            drawn += [
                "",
                "  no measures yet",
                *(f"  {n}: {rows:,} rows wait" for n, rows in waiting),
            ]
        decisions = list(self._decisions)[-max(0, height - 2 - len(drawn)) :]
        drawn += ["", *decisions] if decisions else []
        drawn = drawn[: height - 1]
        if self.notice:
            drawn[-1:] = [self.notice] if len(drawn) == height - 1 else [*drawn[-1:], self.notice]
        return [_cut(line, width) for line in drawn]

    def _headline(self, width: int) -> str:
        parts = [self._title]
        if self._progress is not None:
            parts.append(_progress_text(self._progress))
            if self._progress.offered_rate is not None:
                parts.append(f"{_rate(self._progress.offered_rate)}/s offered")
        if self._snapshot is not None:
            running = sum(op.parallelism for op in self._snapshot.operators.values())
            parts.append(f"{running} replicas")
        if self._progress is not None and self._progress.executors is not None:
            alive, requested = self._progress.executors
            parts.append(f"{alive}{f' -> {requested}' if requested != alive else ''} executors")
        if self._objective_s is not None:
            parts.append(f"objective {short(self._objective_s)} s")
        line = "  ".join(parts)
        return line if len(line) <= width else "  ".join(parts[:2])


def decision_lines(tick: Tick) -> Iterator[str]:
    """Yield one line per change that a tick decided."""
    targets = tick.decision.targets if tick.decision is not None else {}
    for name, target in targets.items():
        if target.wanted != target.current and _is_news(tick, name):
            change = f"{name} {target.current} -> {target.wanted}"
            refused = "" if name in tick.plan else f"not done: {tick.error}; "
            yield f"  {duration(tick.at):>6}  {change:<20}  {refused}{explain_change(target)}"


def event_lines(tick: Tick) -> Iterator[str]:
    """Yield one line per event before a tick, oldest first."""
    for event in sorted(tick.status.events, key=lambda event: event.at):
        match event:
            case BehindEvent() | CaughtUpEvent():
                yield f"  {duration(event.at):>6}  {explain_ingest(event)}"
            case LateEvent() if event.total == event.records:
                # the first ones are a warning; status, journal and summary have the others
                yield f"  {duration(event.at):>6}  WARNING {explain_late_rows(event)}"
            case ExecutorsRequestedEvent() | ExecutorsReadyEvent() | ExecutorLostEvent():
                change, why = explain_executors(event)
                yield f"  {duration(event.at):>6}  {change:<20}  {why}"


def _is_news(tick: Tick, operator: str) -> bool:
    """Whether a change starts at this tick, or fails; running changes were shown before."""
    return operator in tick.plan or operator not in waiting_operators(tick.error)


def plain_line(tick: Tick, progress: RunProgress | None) -> str:
    """Return one tick as one line, for a log."""
    parts = [f"{duration(tick.at):>6}"]
    snapshot = tick.snapshot or (progress.snapshot if progress else None)
    if progress is not None and progress.offered_rate is not None:
        parts.append(f"offered {_rate(progress.offered_rate)}/s")
    for name, running in tick.status.running.items():
        requested = tick.status.requested.get(name, running)
        queue = snapshot.operators[name].queue if snapshot else tick.status.queues.get(name)
        arrow = f"->{requested}" if requested != running else ""
        parts.append(f"{name} {running}{arrow} (queue {short(queue)})")
    for name, ingest in tick.status.ingests.items():
        if ingest.is_behind and ingest.backlog is not None:
            parts.append(f"{name} BEHIND ({short(ingest.backlog)} {ingest.unit})")
    alive, target = tick.status.executors, tick.status.executors_requested
    if alive is not None:
        parts.append(f"executors {alive}{f'->{target}' if target != alive else ''}")
    if tick.snapshot is None and tick.error:
        parts.append(f"no measures: {tick.error}")
    return "  ".join(parts)


def dots(running: int, requested: int, most: int = _DOTS) -> str:
    """Draw replicas: running, requested, about to stop.

    >>> dots(3, 5), dots(4, 2), dots(20, 20)
    ('●●●○○', '●●◌◌', '●●●●●●●●●●●●●●●…')
    """
    stay = min(running, requested)
    rest = _REQUESTED * (requested - running) + _LEAVING * (running - requested)
    drawn = _RUNNING * stay + rest
    return drawn if len(drawn) <= most else drawn[: most - 1] + "…"


class _Columns(NamedTuple):
    """The widths of the columns."""

    name: int
    line: int
    dots: int

    @classmethod
    def of(cls, width: int, operators: Sequence[OperatorSnapshot]) -> "_Columns":
        name = min(_NAME, max((len(op.name) for op in operators), default=0) + 2)
        most = _DOTS if width >= 100 else _DOTS // 2
        # the sparkline of the queue gets the rest of the width
        return cls(name, max(0, min(_QUEUES, width - 57 - name - most)), most)

    def head(self) -> str:
        return (
            f"  {'operator':<{self.name}}{'in/s':>7}{'queue':>8}  {'':<{self.line}}"
            f"  {'replicas':<{self.dots + 9}}{'latency p50':>12}{'p95':>8}"
        )

    def row(self, op: OperatorSnapshot, queues: Sequence[float]) -> str:
        requested = op.parallelism if op.requested is None else op.requested
        number = f"{op.parallelism}" + (f" -> {requested}" if requested != op.parallelism else "")
        line = _queue_line(list(queues)[-self.line :] if self.line else [])
        name = op.name if len(op.name) < self.name else op.name[: self.name - 2] + "…"
        return (
            f"  {name:<{self.name}}{_rate(op.input_rate):>7}{short(op.queue):>8}"
            f"  {line:>{self.line}}"
            f"  {dots(op.parallelism, requested, self.dots) + ' ' + number:<{self.dots + 9}}"
            f"{_seconds(op.extra, 'latency_p50_s'):>12}{_seconds(op.extra, 'latency_p95_s'):>8}"
        )


def _queue_line(queues: Sequence[float]) -> str:
    return sparkline(queues) if any(queues) else "▁" * len(queues)


def _progress_text(progress: RunProgress) -> str:
    if progress.duration_s == float("inf"):
        return duration(progress.second)
    share = min(1.0, progress.second / progress.duration_s)
    full = round(_BAR * share)
    bar = f"[{'#' * full}{'.' * (_BAR - full)}]"
    rest = "draining the backlog" if progress.is_draining else f"of {duration(progress.duration_s)}"
    return f"{bar} {duration(progress.second)} {rest}"


def _rate(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}" if value < 1000 else short(value)


def _seconds(extra: Mapping[str, object], key: str) -> str:
    value = extra.get(key)
    return f"{value:.2f} s" if isinstance(value, int | float) else "-"


def _cut(line: str, width: int) -> str:
    return line if len(line) < width else line[: max(0, width - 2)] + "…"
