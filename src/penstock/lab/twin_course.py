"""A run and its twin over time: replicas, queue and latency as panels of one picture."""

from collections.abc import Sequence
from math import nan

from penstock.control.loop import Tick
from penstock.core.histogram import Histogram
from penstock.reports.pictures import Line, Panel


def panels(real: Sequence[Tick], twin: Sequence[Tick], policy: str) -> tuple[Panel, ...]:
    """Lay both over each other."""
    courses = {"Spark": (real, ""), "twin": (twin, policy)}
    return (
        Panel(
            title="replicas of all operators",
            unit="replicas",
            steps=True,
            lines=tuple(
                _line(n, t, p, [_replicas(one) for one in t]) for n, (t, p) in courses.items()
            ),
        ),
        Panel(
            title="rows that wait in front of all operators",
            unit="rows",
            lines=tuple(
                _line(n, t, p, [_queue(one) for one in t]) for n, (t, p) in courses.items()
            ),
        ),
        Panel(
            title="mean latency of what came out",
            unit="s",
            lines=tuple(
                _line(n, t, p, [_latency(one) for one in t]) for n, (t, p) in courses.items()
            ),
        ),
    )


def _line(label: str, ticks: Sequence[Tick], policy: str, values: Sequence[float]) -> Line:
    minutes = [tick.at / 60 for tick in ticks]
    return Line(label=label, minutes=minutes, values=values, policy=policy)


def _replicas(tick: Tick) -> float:
    return float(sum(tick.status.running.values()))


def _queue(tick: Tick) -> float:
    if tick.snapshot is None:
        return nan
    return sum(op.queue or 0.0 for op in tick.snapshot.operators.values())


def _latency(tick: Tick) -> float:
    together = Histogram()
    for histogram in tick.status.latency.values():
        together.merge(histogram)
    return together.mean if together.count else nan
