"""The picture of one run: load, replicas, queues and latency over the same minutes."""

import math
from collections.abc import Sequence
from pathlib import Path

from penstock.control.journal import Journal
from penstock.control.loop import Tick
from penstock.core.histogram import Histogram
from penstock.reports.pictures import Line, Panel, over_time


def draw_run(journal: Journal, target: Path, title: str) -> None:
    """Draw a journal into a file; what was not measured leaves a gap."""
    ticks = journal.ticks
    over_time(_panels(ticks, journal.run.get("objective_s")), target, title)


def _panels(ticks: Sequence[Tick], objective_s: float | None) -> list[Panel]:
    minutes = [tick.at / 60 for tick in ticks]
    names = list(ticks[-1].status.running) if ticks else []

    def line(label: str, values: Sequence[float]) -> Line:
        return Line(label=label, minutes=minutes, values=values)

    return [
        Panel(
            title="offered",
            unit="records/s",
            lines=(line("offered", [_offered(tick) for tick in ticks]),),
            steps=True,
        ),
        Panel(
            title="replicas that run",
            unit="replicas",
            lines=tuple(line(n, [tick.status.running[n] for tick in ticks]) for n in names),
            steps=True,
        ),
        Panel(
            title="records that wait",
            unit="records",
            lines=tuple(line(name, [_queue(tick, name) for tick in ticks]) for name in names),
        ),
        Panel(
            title="latency from due to done, 95 % of the records below",
            unit="s",
            lines=(line("latency", [_latency(tick) for tick in ticks]),),
            level=objective_s,
            level_name="objective",
        ),
    ]


def _offered(tick: Tick) -> float:
    """Of sources that read the same topic, the largest."""
    return max(tick.snapshot.offered.values(), default=math.nan) if tick.snapshot else math.nan


def _queue(tick: Tick, name: str) -> float:
    found = tick.snapshot.operators[name].queue if tick.snapshot else None
    return math.nan if found is None else found


def _latency(tick: Tick) -> float:
    seen = Histogram()
    for path in tick.status.latency.values():
        seen.merge(path)
    return seen.percentile(95) if seen.count else math.nan
