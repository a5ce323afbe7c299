"""Pictures of runs: over time, cost against latency, bars with intervals.

Each function draws into a file (.svg, .png, .pdf) or, as SVG, into a text stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.reports.canvas import (
    Target,
    draw_level,
    head,
    label_points,
    new_figure,
    save,
    scale,
    style_axes,
)
from penstock.reports.styles import PLAIN, Style, styles_of

_INTERVAL = {"elinewidth": 1.2, "capsize": 2.5}


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureLine:
    """Values over minutes (or steps), in the colour of a policy if it has one; NaN leaves a gap."""

    label: str
    minutes: Sequence[float]
    values: Sequence[float]
    policy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One of several panels that share the time axis."""

    title: str
    #: What the vertical axis counts, such as "records/s".
    unit: str
    lines: tuple[PictureLine, ...]
    #: Each value holds until the next one.
    steps: bool = False
    log: bool = False
    #: A line across, such as an objective, and its name.
    level: float | None = None
    level_name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """A mean and its interval."""

    mean: float
    low: float
    high: float

    @property
    def arms(self) -> list[list[float]]:
        """Return the distances of both ends from the mean, as matplotlib expects them."""
        return [[max(0.0, self.mean - self.low)], [max(0.0, self.high - self.mean)]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The cost (replica hours) and the latency (seconds) of a policy."""

    label: str
    policy: str
    cost: Range
    latency: Range


@dataclass(frozen=True, slots=True, kw_only=True)
class PictureBar:
    """One bar of a group."""

    label: str
    policy: str
    value: Range


def draw_over_time(
    panels: Sequence[Panel], target: Target, title: str = "", unit: str = "minutes"
) -> None:
    """Draw panels below each other over the same minutes or steps, with one common legend."""
    figure = new_figure(0.9 + 1.9 * len(panels))
    column = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    styles, handles = _line_styles(panels), {}
    for axes, panel in zip(column, panels, strict=True):
        for line in panel.lines:
            handles[line.label] = _draw_line(axes, panel, line, styles[line.label])
        style_axes(axes, panel.title, panel.unit)
        scale(axes, [value for line in panel.lines for value in line.values], panel.log)
        if panel.level is not None:
            axes.set_ylim(top=max(axes.get_ylim()[1], 1.05 * panel.level))
            draw_level(axes, panel.level, panel.level_name)
    minutes = [minute for panel in panels for line in panel.lines for minute in line.minutes]
    column[-1].set_xlim(min(minutes, default=0), max(minutes, default=1))
    column[-1].set_xlabel(unit)
    figure.align_ylabels(column)
    in_legend = _legend_labels(panels)
    head(figure, title, {label: handle for label, handle in handles.items() if label in in_legend})
    save(figure, target)


def draw_pareto(points: Sequence[Point], target: Target, title: str = "") -> None:
    """Draw cost against latency; a line joins the Pareto-optimal points."""
    figure = new_figure(4.8)
    axes = figure.subplots()
    for point, style in zip(points, styles_of([p.policy for p in points]), strict=True):
        axes.errorbar(
            point.cost.mean,
            point.latency.mean,
            xerr=point.cost.arms,
            yerr=point.latency.arms,
            fmt=style.mark,
            color=style.colour,
            markersize=8,
            zorder=3,
            **_INTERVAL,
        )
    places = [(point.cost.mean, point.latency.mean) for point in points]
    cost, latency = zip(*_front(places), strict=True)
    axes.plot(cost, latency, color="0.65", linewidth=1.2, linestyle=(0, (4, 3)), zorder=1)
    style_axes(
        axes, "lower left is better; the line joins what nothing beats in both", "latency (s)"
    )
    axes.set_xlabel("cost (replica hours)")
    axes.margins(x=0.14, y=0.12)
    axes.set_xlim(left=0)
    scale(axes, [place[1] for place in places])
    head(figure, title, {})
    figure.draw_without_rendering()  # fixes the layout, by which labels are placed
    label_points(axes, places, [point.label for point in points])
    save(figure, target)


def bars(
    groups: Mapping[str, Sequence[PictureBar]], target: Target, title: str = "", unit: str = ""
) -> None:
    """Draw groups of bars with intervals; bars of one label look alike in every group."""
    figure = new_figure(1.1 + 0.27 * sum(len(group) + 1 for group in groups.values()))
    axes = figure.subplots()
    labels = {bar.label: bar.policy for group in groups.values() for bar in group}
    styles = dict(zip(labels, styles_of(list(labels.values())), strict=True))
    place, middles, handles = 0.0, [], {}
    for group in groups.values():
        middles.append(place + (len(group) - 1) / 2)
        for bar in group:
            handles[bar.label] = _draw_bar(axes, bar, place, styles[bar.label])
            place += 1
        place += 1
    style_axes(axes, "", "")
    axes.grid(visible=False, axis="y")
    axes.grid(axis="x", color="0.9", linewidth=0.8)
    axes.set_yticks(middles, list(groups))
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlabel(unit)
    head(figure, title, handles)
    save(figure, target)


def _draw_line(axes: Any, panel: Panel, line: PictureLine, style: Style) -> Any:
    look = {"color": style.colour, "linestyle": style.dash, "linewidth": 1.5}
    if panel.steps:
        return axes.step(line.minutes, line.values, where="post", **look)[0]
    if len(panel.lines) == 1 and not line.policy:
        axes.fill_between(line.minutes, line.values, color=style.colour, alpha=0.12, linewidth=0)
    return axes.plot(line.minutes, line.values, **look)[0]


def _draw_bar(axes: Any, bar: PictureBar, place: float, style: Style) -> Any:
    whiskers = {**_INTERVAL, "ecolor": "0.2"}
    length, arms = bar.value.mean, bar.value.arms
    return axes.barh(place, length, xerr=arms, height=0.84, color=style.colour, error_kw=whiskers)


def _line_styles(panels: Sequence[Panel]) -> dict[str, Style]:
    """Return one style per label for all panels; grey for a label that is alone."""
    labels = {line.label: line.policy for panel in panels for line in panel.lines}
    ours = [label for label, policy in labels.items() if policy]
    styles = dict(zip(ours, styles_of([labels[label] for label in ours]), strict=True))
    in_legend = _legend_labels(panels)
    others = [label for label in labels if not labels[label]]
    plain = {
        label: PLAIN[i % len(PLAIN)] for i, label in enumerate(o for o in others if o in in_legend)
    }
    return styles | {label: Style(plain.get(label, "#555555")) for label in others}


def _legend_labels(panels: Sequence[Panel]) -> set[str]:
    """Return labels that share a panel with others; only these need the legend."""
    return {line.label for panel in panels if len(panel.lines) > 1 for line in panel.lines}


def _front(places: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the Pareto-optimal places, by cost."""
    front: list[tuple[float, float]] = []
    for cost, latency in sorted(places):
        if not front or latency < front[-1][1]:
            front.append((cost, latency))
    return front
