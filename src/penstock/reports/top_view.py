"""A run as a terminal view: operators, load, latency, the last decisions; drawn with rich.

`RunWatch` follows the run directory; everything else turns what it has read into renderables or
plain lines.
"""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from penstock.control.loop import Tick
from penstock.core.numbers import pretty
from penstock.core.snapshot import OperatorSnapshot
from penstock.errors import InputError
from penstock.extras import import_optional
from penstock.files.lock import find_holder
from penstock.reports.bottleneck_marks import mark_bottlenecks
from penstock.reports.chain_text import find_slowest, members_of
from penstock.reports.event_text import explain_change, explain_no_decision
from penstock.reports.live_view import decision_lines, dots, event_lines
from penstock.reports.progress import duration
from penstock.reports.run_summary import title_of
from penstock.reports.run_warnings import list_warnings
from penstock.reports.text_charts import resample, short, sparkline
from penstock.runs.journal_index import JournalIndex
from penstock.runs.run_columns import RunColumns
from penstock.runs.run_directory import (
    JOURNAL,
    LOCK,
    RESULT,
    SPEC_FILE,
    read_result,
    read_spec_file,
)
from penstock.runs.run_status import check_run_directory

#: Ticks of a long run that are read at the start, the newest.
MAX_TICKS = 2000
_NAME = 16


class RunWatch:
    """Reads a run directory as its journal grows; only the newest ticks of a long run."""

    def __init__(self, run: Path) -> None:
        check_run_directory(run)
        self.run = run
        spec, _ = read_spec_file(run / SPEC_FILE)
        self.title = title_of(spec)
        self.index, self.columns = JournalIndex(run / JOURNAL), RunColumns()
        self._next, self._generation = 0, -1

    def refresh(self) -> int:
        """Read new ticks; return how many there were."""
        self.index.refresh()
        if self._generation != self.index.generation:
            self._generation = self.index.generation
            self.columns = RunColumns()
            self._next = max(0, len(self.index) - MAX_TICKS)
        before = self._next
        self.columns.extend(self.index.read(before, len(self.index)))
        self._next = len(self.index)
        return self._next - before

    def last_ticks(self, count: int) -> list[Tick]:
        """Return the newest ticks that can be read, oldest first."""
        numbers = range(max(0, len(self.index) - count), len(self.index))
        return [tick for number in numbers if (tick := self.index.tick(number)) is not None]

    @property
    def state(self) -> str:
        """Whether it runs, and else how it ended."""
        holder = find_holder(self.run / LOCK)
        if holder is not None:
            return "running" if holder.is_alive else "ending"
        try:
            result = read_result(self.run / RESULT)
        except InputError:
            return "damaged"
        if result is None:
            return "not running"
        return result.spark.ended if result.spark is not None else "finished"


def tick_line(tick: Tick) -> str:
    """Return one tick as one line, for a log."""
    status = tick.status
    parts = [f"{duration(tick.at):>6}"]
    for name, running in status.running.items():
        requested = status.requested.get(name, running)
        shown = tick.snapshot.operators.get(name) if tick.snapshot is not None else None
        queue = shown.queue if shown is not None else status.queues.get(name)
        arrow = f"->{requested}" if requested != running else ""
        parts.append(f"{name} {running}{arrow} (queue {short(queue)})")
    if status.executors is not None:
        parts.append(f"executors {status.executors}")
    if tick.snapshot is None and tick.error:
        parts.append(f"no measures: {tick.error}")
    return "  ".join(parts)


def plain_lines(ticks: Sequence[Tick]) -> Iterator[str]:
    """Yield ticks with their events and decisions as lines."""
    for tick in ticks:
        yield from event_lines(tick)
        yield tick_line(tick)
        yield from decision_lines(tick)


def draw_top(watch: RunWatch, width: int, height: int) -> Any:
    """Return the view as a rich renderable that fits a terminal."""
    console = import_optional("rich.console", "penstock top")
    text = import_optional("rich.text", "penstock top")
    ticks = watch.last_ticks(40)
    last = ticks[-1] if ticks else None
    parts: list[Any] = [text.Text(_headline(watch, last), style="bold", no_wrap=True)]
    if last is None:
        parts.append(text.Text("no tick yet"))
        return console.Group(*parts)
    figures = [*_figures(watch, width)][: max(0, height - 10)]
    measured = next((tick for tick in reversed(ticks) if tick.snapshot is not None), last)
    figures += [line for line in (_why_unchanged(last), _health(watch)) if line and height >= 16]
    parts += [text.Text(line, no_wrap=True, overflow="ellipsis") for line in figures]
    room = height - len(parts) - 4
    parts.append(_operator_table(last, measured, width, max(1, room - 4)))
    room -= min(len(last.status.running), max(1, room - 4)) + 1
    news = [line for tick in ticks for line in (*event_lines(tick), *decision_lines(tick))]
    shown = news[-max(0, room) :] if room > 0 else []
    parts += [text.Text(line, no_wrap=True, overflow="ellipsis") for line in ["", *shown]]
    parts.append(text.Text("q quits", style="dim"))
    return console.Group(*parts)


def _headline(watch: RunWatch, last: Tick | None) -> str:
    at = f"  {duration(last.at)}" if last is not None else ""
    return f"{watch.title}  [{watch.state}]{at}"


def _figures(watch: RunWatch, width: int) -> Iterator[str]:
    """Yield load, replicas and latency, each with a sparkline of the newest ticks."""
    columns, room = watch.columns, max(8, min(60, width - 42))
    objective = watch.index.header.get("objective_s")
    latency = "latency p95" if objective is None else f"latency p95 (objective {objective:g} s)"
    for label, measure, unit in (
        ("offered", "offered_rate", "/s"),
        ("processed", "processed_rate", "/s"),
        ("waiting", "backlog", ""),
        ("replicas", "replicas", ""),
        (latency, "latency_p95", " s"),
        ("executors", "executors", ""),
        ("hosts", "hosts", ""),
        ("highest load of a host", "host_load_max", ""),
        ("slices that move", "moves", ""),
        ("instances that the load needs", "ideal", ""),
        ("messages per tick", "messages", ""),
    ):
        values = columns.column(measure)[-4 * room :]
        known = values[np.isfinite(values)]
        if len(known):
            line = _spark(values, room)
            yield f"{label:<28} {short(float(known[-1])) + unit:>10} {line}"


def _why_unchanged(tick: Tick) -> str:
    """Return why the last tick changed nothing; empty if it changed something."""
    decision = tick.decision
    if decision is None:
        return f"no decision: {explain_no_decision(tick)}"
    if decision.is_change:
        return ""
    if decision.placement is not None:
        return f"no change: {decision.placement.reason}"
    reasons: dict[str, list[str]] = {}
    for name, target in decision.targets.items():
        reasons.setdefault(explain_change(target), []).append(name)
    return "no change: " + "; ".join(f"{', '.join(names)} {why}" for why, names in reasons.items())


def _health(watch: RunWatch) -> str:
    """Return what went wrong in the ticks that were read, on one line."""
    return "health: " + (", ".join(list_warnings(watch.columns)) or "no problems are known")


def _spark(values: Any, room: int) -> str:
    listed = [None if math.isnan(value) else max(0.0, value) for value in values.tolist()]
    picked = resample(listed, min(room, len(listed)), max)
    return sparkline([value or 0.0 for value in picked])


def _operator_table(last: Tick, measured: Tick, width: int, rows: int) -> Any:
    tables = import_optional("rich.table", "penstock top")
    is_wide = width >= 100
    gap = (0, 1) if is_wide else (0, 1, 0, 0)
    table = tables.Table(box=None, pad_edge=False, show_edge=False, expand=False, padding=gap)
    table.add_column("operator", no_wrap=True, max_width=_NAME + (10 if is_wide else 0))
    for name in ("in/s", "queue", "busy", "idle", "blocked"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("replicas", no_wrap=True)
    table.add_column("wanted", justify="right", no_wrap=True)
    snapshot = measured.snapshot
    slow = mark_bottlenecks(snapshot) if snapshot is not None else frozenset()
    for name in [*last.status.running][:rows]:
        shown = snapshot.operators.get(name) if snapshot is not None else None
        mark = "\N{BLACK UP-POINTING TRIANGLE} " if name in slow else ""
        table.add_row(
            f"{mark}{name}{_slowest_member(shown)}",
            *_measures(shown, name, last),
            *_replicas(name, last, is_wide),
        )
    left_out = len(last.status.running) - rows
    if left_out > 0:
        table.add_row(f"... {left_out} more")
    return table


def _slowest_member(shown: OperatorSnapshot | None) -> str:
    """Return the member of a chain that takes the most time, behind the name of the chain."""
    slowest = find_slowest(members_of(shown)) if shown is not None else None
    return f" > {slowest['name']}" if slowest is not None else ""


def _measures(shown: OperatorSnapshot | None, name: str, last: Tick) -> Iterator[str]:
    yield short(shown.input_rate if shown is not None else None)
    yield short(shown.queue if shown is not None else last.status.queues.get(name))
    for measure in ("busy", "idle", "backpressured"):
        share = getattr(shown, measure) if shown is not None else None
        yield "-" if share is None else f"{100 * share:.0f} %"


def _replicas(name: str, last: Tick, is_wide: bool) -> Iterator[str]:
    running = last.status.running[name]
    requested = last.status.requested.get(name, running)
    number = f"{running}" + (f" -> {requested}" if requested != running else "")
    yield f"{dots(running, requested, 16 if is_wide else 10)} {number}"
    target = last.decision.targets.get(name) if last.decision is not None else None
    yield pretty(target.wanted) if target is not None else "-"
