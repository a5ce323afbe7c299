"""Pictures over time: load, replicas, queues and latency of one run, or several runs together."""

import math
from collections.abc import Mapping, Sequence

from penstock.control.loop import Tick
from penstock.core.histogram import merge_histograms
from penstock.reports.canvas import Target
from penstock.reports.pictures import Panel, PictureLine, draw_over_time
from penstock.runs.journal import Journal
from penstock.runs.tick_json import operators_of


def draw_run(journal: Journal, target: Target, title: str) -> None:
    """Draw a journal into a file or stream; missing measurements leave a gap, or no panel."""
    panels = _panels(journal.ticks, journal.run.get("objective_s"))
    draw_over_time([panel for panel in panels if _has_values(panel)], target, title)


def draw_comparison(journals: Mapping[str, Journal], target: Target, title: str = "") -> None:
    """Draw replicas and latency of several runs over the same time, one line per run."""
    objectives = {journal.run.get("objective_s") for journal in journals.values()}
    panels = [
        Panel(
            title="replicas that run",
            unit="replicas",
            lines=tuple(
                _run_line(name, journal, [sum(t.status.running.values()) for t in journal.ticks])
                for name, journal in journals.items()
            ),
            steps=True,
        ),
        Panel(
            title="latency from due to done, 95 % of the records below",
            unit="s",
            lines=tuple(
                _run_line(name, journal, [_latency_p95(tick) for tick in journal.ticks])
                for name, journal in journals.items()
            ),
            level=objectives.pop() if len(objectives) == 1 else None,
            level_name="objective",
        ),
    ]
    draw_over_time([panel for panel in panels if _has_values(panel)], target, title)


def _run_line(name: str, journal: Journal, values: Sequence[float]) -> PictureLine:
    return PictureLine(
        label=name,
        minutes=[tick.at / 60 for tick in journal.ticks],
        values=values,
        policy=str(journal.run.get("policy", "")),
    )


def _latency_p95(tick: Tick) -> float:
    """Return the latency over all paths; NaN if no record came through."""
    merged = merge_histograms(tick.status.latency.values())
    return merged.percentile(95) if merged.count else math.nan


def _has_values(panel: Panel) -> bool:
    return any(math.isfinite(value) for line in panel.lines for value in line.values)


def _panels(ticks: Sequence[Tick], objective_s: float | None) -> list[Panel]:
    minutes = [tick.at / 60 for tick in ticks]
    names = operators_of(ticks)

    def line(label: str, values: Sequence[float]) -> PictureLine:
        return PictureLine(label=label, minutes=minutes, values=values)

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
            lines=tuple(line(name, [_replicas(tick, name) for tick in ticks]) for name in names),
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
            lines=tuple(_latency(ticks, path) for path in _paths(ticks)),
            level=objective_s,
            level_name="objective",
        ),
    ]


def _offered(tick: Tick) -> float:
    """Return the largest offered rate; sources of the same topic have the same rate."""
    return max(tick.snapshot.offered.values(), default=math.nan) if tick.snapshot else math.nan


def _replicas(tick: Tick, name: str) -> float:
    """Return the replicas; NaN while the operator is not part of the pipeline."""
    return tick.status.running.get(name, math.nan)


def _queue(tick: Tick, name: str) -> float:
    operator = tick.snapshot.operators.get(name) if tick.snapshot else None
    return math.nan if operator is None or operator.queue is None else operator.queue


def _paths(ticks: Sequence[Tick]) -> list[str]:
    return list(dict.fromkeys(path for tick in ticks for path in tick.status.latency))


def _latency(ticks: Sequence[Tick], path: str) -> PictureLine:
    """Return the latency of a path, labelled by its last operator, for ticks with records."""
    samples = [(tick.at / 60, tick.status.latency[path]) for tick in ticks if _has(tick, path)]
    return PictureLine(
        label=path.rpartition(" > ")[2],
        minutes=[minute for minute, _ in samples],
        values=[histogram.percentile(95) for _, histogram in samples],
    )


def _has(tick: Tick, path: str) -> bool:
    return path in tick.status.latency and tick.status.latency[path].count > 0
