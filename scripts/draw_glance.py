"""Draw a finished run on Spark at a glance: python scripts/draw_glance.py RUN docs/glance.svg

Replicas over the offered load, what a fixed deployment for the peak would have, and latency. RUN of
docs/glance.svg is the run of docs/getting-started.md, section 3.
"""

import math
import sys
from pathlib import Path
from typing import Any

from penstock import Run, open_run
from penstock.core.histogram import merge_histograms
from penstock.reports.canvas import new_figure, save, style_axes

GREEN, BLUE, GREY = "#007A5A", "#0072B2", "0.35"
SMALL = 10


def main(run: Run, target: Path) -> None:
    """Draw one wide panel of load and replicas, and a flat one of latency."""
    figure = new_figure(4.0)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.2))
    ticks = run.journal.ticks
    minutes = [tick.at / 60 for tick in ticks]
    load = [max(tick.snapshot.offered.values()) if tick.snapshot else math.nan for tick in ticks]
    replicas = [sum(tick.status.running.values()) for tick in ticks]
    spark = run.result.spark
    assert spark is not None, "a simulated run has no static deployment to compare with"
    peak = spark.measures.static_peak.replicas
    share = run.result.replicas.avg / peak
    draw_load(top, minutes, load, max(load) * max(peak, *replicas) / peak)
    top.step(minutes, replicas, where="post", color=GREEN, linewidth=2.2)
    top.axhline(peak, color=GREY, linewidth=1.2, linestyle=(0, (5, 3)))
    note(top, minutes[1], peak, f"a fixed deployment for the peak: {peak} replicas all the time")
    note(top, minutes[1], 0.8 * peak, f"Penstock: {share:.0%} of them on average", GREEN)
    style_axes(top, "", "replicas")
    top.yaxis.get_major_locator().set_params(integer=True)
    top.set_ylim(0, 1.12 * max(peak, *replicas))
    draw_latency(bottom, run)
    bottom.set_xlim(minutes[0], minutes[-1])
    bottom.set_xlabel("minutes")
    figure.align_ylabels((top, bottom))
    save(figure, target)


def draw_load(axes: Any, minutes: list[float], load: list[float], highest: float) -> None:
    """Draw the offered load as an area behind the replicas, with a scale at the right."""
    beside = axes.twinx()
    beside.fill_between(minutes, load, step="post", color="#C9D8E6", linewidth=0)
    beside.set_ylim(0, 1.12 * highest)
    beside.set_ylabel("load, records/s", color=BLUE)
    beside.tick_params(axis="y", colors=BLUE)
    for side in ("top", "left"):
        beside.spines[side].set_visible(False)
    axes.set_zorder(beside.get_zorder() + 1)
    axes.patch.set_visible(False)


def draw_latency(axes: Any, run: Run) -> None:
    """Draw the 95th percentile of the latency over all paths, and the objective."""
    points = [
        (tick.at / 60, merged.percentile(95))
        for tick in run.journal.ticks
        if (merged := merge_histograms(tick.status.latency.values())).count
    ]
    axes.plot(*zip(*points, strict=True), color=BLUE, linewidth=1.5)
    objective_s = run.result.objective.objective_s
    highest = max(objective_s or 0, *(value for _, value in points))
    style_axes(axes, "", "latency, s")
    axes.set_ylim(0, 1.4 * highest)
    if objective_s is not None:
        axes.axhline(objective_s, color=GREY, linewidth=1.2, linestyle=(0, (5, 3)))
        note(
            axes,
            points[0][0],
            highest,
            f"95 % of the records are faster; objective {objective_s:g} s",
        )


def note(axes: Any, x: float, y: float, text: str, colour: str = GREY) -> None:
    """Write above a line instead of in a legend."""
    axes.annotate(
        text,
        (x, y),
        xytext=(4, 6),
        textcoords="offset points",
        color=colour,
        fontsize=SMALL,
        weight="bold" if colour == GREEN else "normal",
    )


if __name__ == "__main__":
    main(open_run(sys.argv[1]), Path(sys.argv[2]))
