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
from penstock.errors import InputError
from penstock.extras import import_optional
from penstock.files.lock import find_holder
from penstock.reports.live_view import decision_lines, dots, event_lines
from penstock.reports.progress import duration
from penstock.reports.run_summary import title_of
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
    figures = [*_figures(watch, width)][: max(0, height - 9)]
    parts += [text.Text(line, no_wrap=True, overflow="ellipsis") for line in figures]
    room = height - len(parts) - 4
    measured = next((tick for tick in reversed(ticks) if tick.snapshot is not None), last)
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
    ):
        values = columns.column(measure)[-4 * room :]
        known = values[np.isfinite(values)]
        if len(known):
            line = _spark(values, room)
            yield f"{label:<28} {short(float(known[-1])) + unit:>10} {line}"


def _spark(values: Any, room: int) -> str:
    listed = [None if math.isnan(value) else max(0.0, value) for value in values.tolist()]
    picked = resample(listed, min(room, len(listed)), max)
    return sparkline([value or 0.0 for value in picked])


def _operator_table(last: Tick, measured: Tick, width: int, rows: int) -> Any:
    tables = import_optional("rich.table", "penstock top")
    is_wide = width >= 100
    table = tables.Table(box=None, pad_edge=False, show_edge=False, expand=False, padding=(0, 1))
    table.add_column("operator", no_wrap=True, max_width=_NAME + (10 if is_wide else 0))
    for name in ("in/s", "queue", "busy"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("replicas", no_wrap=True)
    table.add_column("wanted", justify="right", no_wrap=True)
    for name, running in [*last.status.running.items()][:rows]:
        shown = measured.snapshot.operators.get(name) if measured.snapshot is not None else None
        requested = last.status.requested.get(name, running)
        target = last.decision.targets.get(name) if last.decision is not None else None
        number = f"{running}" + (f" -> {requested}" if requested != running else "")
        busy = "-" if shown is None or shown.busy is None else f"{100 * shown.busy:.0f} %"
        queue = shown.queue if shown is not None else last.status.queues.get(name)
        table.add_row(
            name,
            short(shown.input_rate if shown is not None else None),
            short(queue),
            busy,
            f"{dots(running, requested, 16 if is_wide else 10)} {number}",
            pretty(target.wanted) if target is not None else "-",
        )
    left_out = len(last.status.running) - rows
    if left_out > 0:
        table.add_row(f"... {left_out} more", "", "", "", "", "")
    return table
