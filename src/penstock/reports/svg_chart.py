"""Charts over time as SVG text without scripts; colours and fonts come from the page's style."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from penstock.reports.text_charts import short
from penstock.runs.decimation import decimate, decimate_times

Values = NDArray[np.floating[Any]]
WIDTH, HEIGHT = 960, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 24, 10, 24
#: Points of a line: two per dot of the width would show no more.
_POINTS = 1200
#: Lines beyond this many colours start again with the first one, dashed.
COLOURS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """One line; NaN leaves a gap."""

    label: str
    times: Values
    values: Values
    #: Drawn as steps: the value holds until the next one.
    is_step: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """One chart: lines or stacked areas over seconds of a run."""

    title: str
    unit: str
    lines: tuple[ChartLine, ...]
    is_stacked: bool = False
    #: A horizontal line, such as the objective.
    level: float | None = None
    level_label: str = ""
    #: Times that get a mark below the chart.
    marks: tuple[float, ...] = ()
    end_s: float = 0.0


def has_values(chart: Chart) -> bool:
    """Whether a chart shows anything."""
    return any(bool(np.isfinite(line.values).any()) for line in chart.lines)


def draw_chart(chart: Chart) -> str:
    """Return the chart as an SVG element."""
    lines = _stack(chart.lines) if chart.is_stacked else [(line, None) for line in chart.lines]
    top = _round_up(_highest(chart, [line for line, _ in lines]))
    end_s = chart.end_s or max(float(line.times[-1]) for line in chart.lines if len(line.times))
    scale = _Scale(end_s, top)
    parts = [*_grid(scale, chart.unit)]
    for number, (line, base) in reversed([*enumerate(lines)]):
        parts.append(_draw_line(scale, line, base, number))
    if chart.level is not None and chart.level <= top:
        y = scale.y(chart.level)
        parts.append(f'<path class="level" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>')
        parts.append(
            f'<text class="note" x="{WIDTH - _RIGHT - 4}" y="{y - 4:.1f}" text-anchor="end">'
            f"{escape(chart.level_label)}</text>"
        )
    if chart.marks:
        path = "".join(f"M{scale.x(at):.1f} {HEIGHT - _BOTTOM}v6" for at in chart.marks)
        parts.append(f'<path class="marks" d="{path}"/>')
    label = escape(f"{chart.title}, {chart.unit}", quote=True)
    head = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">'
    return f"{head}{''.join(parts)}</svg>"


@dataclass(frozen=True, slots=True)
class _Scale:
    end_s: float
    top: float

    def x(self, at: float) -> float:
        return _LEFT + (WIDTH - _LEFT - _RIGHT) * at / (self.end_s or 1.0)

    def y(self, value: float) -> float:
        share = min(max(value / self.top, 0.0), 1.0)
        return HEIGHT - _BOTTOM - (HEIGHT - _TOP - _BOTTOM) * share


def _stack(lines: Sequence[ChartLine]) -> list[tuple[ChartLine, Values | None]]:
    """Return lines that are the sums of those below them, each with its base."""
    stacked: list[tuple[ChartLine, Values | None]] = []
    base: Values | None = None
    for line in lines:
        values = np.nan_to_num(line.values, nan=0.0)
        total = values if base is None else base + values
        zero = np.zeros_like(total) if base is None else base
        summed = ChartLine(label=line.label, times=line.times, values=total, is_step=line.is_step)
        stacked.append((summed, zero))
        base = total
    return stacked


def _highest(chart: Chart, lines: Sequence[ChartLine]) -> float:
    known = [line.values[np.isfinite(line.values)] for line in lines]
    top = max((float(values.max()) for values in known if len(values)), default=0.0)
    # an objective far above everything would flatten the lines
    return max(top, chart.level) if chart.level is not None and chart.level < 4 * top else top


def _round_up(value: float) -> float:
    """Return the next number of the form 1, 2, 2.5, 5 times a power of ten.

    >>> [_round_up(v) for v in (0.0, 0.7, 3.0, 23.0, 5.0)]
    [1.0, 1.0, 5.0, 25.0, 5.0]
    """
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return float(next(n * power for n in (1, 2, 2.5, 5, 10) if n * power >= value * (1 - 1e-9)))


def _grid(scale: _Scale, unit: str) -> Iterator[str]:
    for share in (0.0, 0.5, 1.0):
        y = scale.y(scale.top * share)
        yield f'<path class="grid" d="M{_LEFT} {y:.1f}H{WIDTH - _RIGHT}"/>'
        yield (
            f'<text class="tick" x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">'
            f"{escape(short(scale.top * share))}</text>"
        )
    step = _time_step(scale.end_s)
    at = 0.0
    while at <= scale.end_s + 1e-9:
        yield (
            f'<text class="tick" x="{scale.x(at):.1f}" y="{HEIGHT - 4}" text-anchor="middle">'
            f"{escape(time_label(at, scale.end_s))}</text>"
        )
        at += step
    yield f'<text class="tick" x="{_LEFT + 4}" y="{_TOP + 8}">{escape(unit)}</text>'


def _time_step(end_s: float) -> float:
    """Return a round time so that an axis has four to eight labels."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 14400, 43200)
    return float(
        next((step for step in steps if end_s / step <= 8), 86400.0 * max(1, end_s // 6e5))
    )


def time_label(at: float, end_s: float) -> str:
    """Write a time on an axis in the unit that fits its length.

    >>> time_label(90, 100), time_label(600, 8400), time_label(7200, 100000)
    ('90 s', '10 min', '2 h')
    """
    if end_s <= 240:
        return f"{at:g} s"
    return f"{at / 60:g} min" if end_s <= 12 * 3600 else f"{at / 3600:g} h"


def _draw_line(scale: _Scale, line: ChartLine, base: Values | None, number: int) -> str:
    times, values = decimate_times(line.times, _POINTS), decimate(line.values, _POINTS)
    path = _path(scale, times, values, line.is_step)
    kind = f"c{number % COLOURS}" + (" dashed" if number >= COLOURS else "")
    if base is None:
        return f'<path class="line {kind}" d="{path}"/>'
    below = _path(scale, times[::-1], decimate(base, _POINTS)[::-1], line.is_step, is_back=True)
    area = f"{path}L{below[1:]}Z" if path and below else ""
    return f'<path class="area {kind}" d="{area}"/><path class="line {kind}" d="{path}"/>'


def _path(
    scale: _Scale, times: Values, values: Values, is_step: bool, *, is_back: bool = False
) -> str:
    parts: list[str] = []
    is_open = False
    for at, value in zip(times.tolist(), values.tolist(), strict=True):
        if not math.isfinite(value):
            is_open = is_back  # an area stays closed
            continue
        x, y = scale.x(at), scale.y(value)
        if not is_open:
            parts.append(f"M{x:.1f} {y:.1f}")
        elif is_step:
            # a step goes along first and up then; on the way back, the other way round
            parts.append(f"V{y:.1f}H{x:.1f}" if is_back else f"H{x:.1f}V{y:.1f}")
        else:
            parts.append(f"L{x:.1f} {y:.1f}")
        is_open = True
    return "".join(parts)
