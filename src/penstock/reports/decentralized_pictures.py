"""Figures 3 to 6 of the paper on decentralized scaling, redrawn from simulations."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from penstock.core.instance_decision import ideal
from penstock.decentralized.simulator.setup import DecentralizedSetup
from penstock.decentralized.simulator.simulation import simulate_setup
from penstock.decentralized.simulator.summary import accuracy_series, throughput_series
from penstock.decentralized.simulator.timeline import ScalingTimeline
from penstock.decentralized.simulator.traffic import fit_power, list_traffic_points
from penstock.reports.canvas import Target, head, new_figure, save, scale, style_axes
from penstock.reports.pictures import Panel, PictureLine, draw_over_time
from penstock.reports.styles import PLAIN

FORMATS = (".svg", ".png")
#: Loads of figure 6: the same increase, and the same factor, from each step to the next.
GROWING = {"ramp": "load grows by the same amount", "growth": "load grows by the same factor"}


def write_figures(timeline: ScalingTimeline, directory: Path) -> Iterator[Path]:
    """Draw all figures as SVG and PNG; yield each file."""
    growing = {load: simulate_setup(_growing_setup(timeline.setup, load)) for load in GROWING}
    middle = (timeline.setup.operators - 1) // 2
    drawings: dict[str, Callable[[Target], None]] = {
        "figure-3": lambda to: draw_scaling(timeline, to),
        "figure-4": lambda to: draw_scaling(timeline, to, middle),
        "figure-5": lambda to: draw_accuracy(timeline, to, middle),
        "figure-6": lambda to: draw_traffic(growing, to),
    }
    for name, draw in drawings.items():
        for ending in FORMATS:
            path = directory / f"{name}{ending}"
            draw(path)
            yield path


def draw_scaling(timeline: ScalingTimeline, target: Target, operator: int | None = None) -> None:
    """Draw load, instances and messages over time: of the pipeline, or of one operator."""
    series = timeline.total if operator is None else timeline.operators[operator]
    setup, place = timeline.setup, _place(operator)
    chosen = timeline.operators if operator is None else (series,)
    wanted = [
        float(sum(ideal(load, setup.capacity, setup.r) for load in loads))
        for loads in zip(*(each.load for each in chosen), strict=True)
    ]
    panels = [
        Panel(title="load", unit="records/step", lines=(_line("load", series.load),)),
        Panel(
            title="instances",
            unit="instances",
            lines=(_line("running", series.instances), _line("ideal", wanted)),
            steps=True,
        ),
        Panel(title="messages", unit="messages/step", lines=(_line("", series.messages),)),
    ]
    title = f"Load, instances and messages of {place}, seed {setup.seed}"
    draw_over_time(panels, target, title, "step")


def draw_accuracy(timeline: ScalingTimeline, target: Target, operator: int) -> None:
    """Draw the accuracy and the share of the ideal throughput of one operator."""
    series = timeline.operators[operator]
    shares = [100 * share for share in throughput_series(timeline, series)]
    panels = [
        Panel(
            title="accuracy: instances / ideal",
            unit="ratio",
            lines=(_line("accuracy", accuracy_series(timeline, series)),),
            level=1.0,
            level_name="ideal",
        ),
        Panel(title="ideal throughput", unit="%", lines=(_line("throughput", shares),)),
    ]
    title = f"Accuracy and throughput of {_place(operator)}, seed {timeline.setup.seed}"
    draw_over_time(panels, target, title, "step")


def draw_traffic(timelines: Mapping[str, ScalingTimeline], target: Target) -> None:
    """Draw messages against nodes for growing loads, with the fitted powers."""
    figure = new_figure(4.8)
    axes = figure.subplots()
    handles: dict[str, Any] = {}
    everything: list[float] = []
    for (load, timeline), colour, mark in zip(timelines.items(), PLAIN, "os", strict=False):
        points = list_traffic_points(timeline)
        nodes, messages = np.array(points, float).reshape(-1, 2).T  # there may be none
        everything += messages.tolist()
        axes.plot(nodes, messages, mark, color=colour, markersize=5)
        if fit := fit_power(points):
            label = f"{GROWING[load]}: messages ~ nodes^{fit.exponent:.2f}"
            curve = fit.factor * nodes**fit.exponent
            handles[label] = axes.plot(nodes, curve, color=colour, linewidth=1.5)[0]
    setup = next(iter(timelines.values())).setup
    style_axes(axes, f"each point: {2 * setup.every} steps", f"messages/{2 * setup.every} steps")
    axes.set_xlabel("instances in the pipeline")
    scale(axes, everything, log=False)
    head(figure, "Traffic when the load grows", handles)
    save(figure, target)


def _growing_setup(setup: DecentralizedSetup, load: str) -> DecentralizedSetup:
    """Return the setup with a growing load and without faults; counting gives the same messages."""
    faultless = replace(setup, message_loss=0.0, message_delay=0, record_delay=0, crashes=0)
    return replace(faultless, load=load, trace="", mode="counted", growth=8.0)


def _line(label: str, values: Any) -> PictureLine:
    return PictureLine(label=label, minutes=range(len(values)), values=values)


def _place(operator: int | None) -> str:
    return "the whole pipeline" if operator is None else f"operator {operator + 1}"
