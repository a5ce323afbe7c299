"""A run and its twin over time: replicas, queue and latency as panels of one picture."""

from collections.abc import Callable, Mapping, Sequence

from penstock.control.loop import Tick
from penstock.core.histogram import Histogram
from penstock.reports.pictures import Panel, PictureLine


def panels(real: Sequence[Tick], twin: Sequence[Tick]) -> tuple[Panel, ...]:
    """Lay both over each other."""
    both = {"Spark": real, "twin": twin}
    return (
        _panel("replicas of all operators", "replicas", both, _replicas, steps=True),
        _panel("rows that wait in front of all operators", "rows", both, _queue),
        _panel("mean latency of what came out", "s", both, _latency),
    )


def _panel(
    title: str,
    unit: str,
    courses: Mapping[str, Sequence[Tick]],
    of: Callable[[Tick], float | None],
    *,
    steps: bool = False,
) -> Panel:
    lines = []
    for label, ticks in courses.items():
        points = [(tick.at / 60, value) for tick in ticks if (value := of(tick)) is not None]
        minutes, values = zip(*points, strict=True) if points else ((), ())
        lines.append(PictureLine(label=label, minutes=minutes, values=values))
    return Panel(title=title, unit=unit, lines=tuple(lines), steps=steps)


def _replicas(tick: Tick) -> float:
    return float(sum(tick.status.running.values()))


def _queue(tick: Tick) -> float | None:
    if tick.snapshot is None:
        return None
    return sum(op.queue or 0.0 for op in tick.snapshot.operators.values())


def _latency(tick: Tick) -> float | None:
    together = Histogram()
    for histogram in tick.status.latency.values():
        together.merge(histogram)
    return together.mean if together.count else None
