"""Size, frame, legend, scale and file format of all pictures.

matplotlib is imported only when a picture is drawn.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TextIO

from penstock.errors import InputError, nearest
from penstock.extras import import_optional

ENDINGS = (".svg", ".png", ".pdf")
#: A file, whose ending chooses the format, or a text stream, which gets SVG.
Target = Path | TextIO
#: Inches; at 100 dots per inch a picture is 1000 dots wide, and its text is readable unscaled.
WIDTH = 10.0
DOTS = 100
#: A scale is logarithmic if the largest value exceeds this multiple of the smallest.
_MIN_LOG_RATIO = 20
_GREY = "0.35"
#: Offsets of a label from its point, in dots, the preferred ones first.
_PLACES = ((10, 13), (10, -13), (-10, 13), (-10, -13), (10, 28), (10, -28), (-10, 28), (-10, -28))
_Box = tuple[float, float, float, float]


def new_figure(height: float) -> Any:
    """Return an empty figure; the height is in inches."""
    figures = import_optional("matplotlib.figure", "drawing a chart")
    return figures.Figure(figsize=(WIDTH, height), layout="constrained")


def check_ending(target: Target) -> str:
    """Return the ending that chooses the format; refuse a file with another one."""
    kind = target.suffix.lower() if isinstance(target, Path) else ".svg"
    if kind not in ENDINGS:
        problem = f"must end in {', '.join(ENDINGS)}, got {str(target)!r}"
        raise InputError("picture", problem, nearest(kind, ENDINGS))
    return kind


def save(figure: Any, target: Target) -> None:
    """Write a figure; equal figures give equal bytes."""
    kind = check_ending(target)
    undated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(kind)
    try:
        with import_module("matplotlib").rc_context({"svg.hashsalt": "penstock"}):
            figure.savefig(target, format=kind[1:], dpi=DOTS, metadata=undated)
    except OSError as error:
        raise InputError("picture", f"cannot be written: {error}") from None


def render_svg(draw: Callable[[TextIO], None]) -> str:
    """Return the drawing of a function as SVG: `render_svg(lambda to: draw_pareto(points, to))`."""
    text = io.StringIO()
    draw(text)
    return text.getvalue()


def style_axes(axes: Any, title: str, unit: str) -> None:
    """Set the title and the unit of axes, and remove half of their frame."""
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_ylabel(unit)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def head(figure: Any, title: str, handles: Mapping[str, Any]) -> None:
    """Put the title and, below it, the legend above all axes."""
    bold = {"size": 13, "weight": "bold"}
    if not handles:
        figure.suptitle(title, x=0.01, ha="left", fontproperties=bold)
        return
    figure.legend(
        list(handles.values()),
        list(handles),
        title=title,
        title_fontproperties=bold,
        alignment="left",
        loc="outside upper left",
        ncols=max(1, min(len(handles), 125 // (max(map(len, handles)) + 7))),
        frameon=False,
        fontsize=10,
        handlelength=2.4,
    )


def draw_level(axes: Any, level: float, name: str) -> None:
    """Draw a horizontal line with its name at the right."""
    axes.axhline(level, color=_GREY, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1)
    axes.annotate(
        name,
        (1, level),
        xycoords=("axes fraction", "data"),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        fontsize=9,
        color=_GREY,
    )


def scale(axes: Any, values: Sequence[float], log: bool | None = None) -> None:
    """Scale the vertical axis; `log` None: logarithmic if the values differ much."""
    positive = [value for value in values if value > 0]
    if log is None:
        log = len(positive) == len(values) and bool(values)
        log = log and max(positive) > _MIN_LOG_RATIO * min(positive)
    ticker = import_module("matplotlib.ticker")
    if log and positive:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(ticker.StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    else:
        axes.set_ylim(bottom=0)
        if all(float(value).is_integer() for value in values):  # counts have no fractions
            axes.yaxis.set_major_locator(ticker.MaxNLocator(nbins="auto", integer=True))
        axes.yaxis.set_major_formatter(ticker.EngFormatter(sep=""))


def label_points(axes: Any, points: Sequence[tuple[float, float]], labels: Sequence[str]) -> None:
    """Write labels next to points such that they overlap neither points nor each other."""
    dots = [(float(x), float(y)) for x, y in axes.transData.transform(points)]
    taken = [(x - 8, y - 8, x + 8, y + 8) for x, y in dots]
    for (x, y), point, label in zip(dots, points, labels, strict=True):
        boxes = [_label_box((x, y), place, label) for place in _PLACES]
        inside = [axes.bbox.x0 < box[0] and box[2] < WIDTH * DOTS for box in boxes]
        free = [
            fits and not any(_overlap(box, other) for other in taken)
            for box, fits in zip(boxes, inside, strict=True)
        ]
        best = free.index(True) if True in free else 0
        taken.append(boxes[best])
        right, up = _PLACES[best]
        axes.annotate(
            label,
            point,
            xytext=(right * 72 / DOTS, up * 72 / DOTS),
            textcoords="offset points",
            va="center",
            ha="left" if right > 0 else "right",
            fontsize=10,
            zorder=4,
        )


def _label_box(dot: tuple[float, float], place: tuple[float, float], label: str) -> _Box:
    """Return the approximate bounding box of a label next to a dot."""
    wide = 7.6 * len(label)
    left = dot[0] + place[0] - (wide if place[0] < 0 else 0)
    middle = dot[1] + place[1]
    return (left, middle - 8, left + wide, middle + 8)


def _overlap(a: _Box, b: _Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]
