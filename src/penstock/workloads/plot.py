"""Draws a workload; needs matplotlib."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from penstock.errors import InputError, nearest
from penstock.extras import import_optional
from penstock.workloads.workload import Workload

ENDINGS = (".png", ".svg", ".pdf")
_BLUE = "#1f6fb2"


def _check(file: str) -> Path:
    """Return the path, or say why no picture can be written there."""
    path = Path(file)
    if path.suffix.lower() not in ENDINGS:
        hint = nearest(path.suffix, ENDINGS)
        raise InputError("plot", f"must end in {', '.join(ENDINGS)}, got {file!r}", hint)
    if not path.parent.is_dir():
        raise InputError("plot", f"there is no directory {str(path.parent)!r}")
    return path


def draw_workload(load: Workload, title: str, file: str) -> Path:
    """Draw the rate over time into a file; its ending chooses the format."""
    path = _check(file)
    figures = import_optional("matplotlib.figure", "--plot")
    ticker = import_optional("matplotlib.ticker", "--plot")
    figure = figures.Figure(figsize=(9, 3.6), layout="constrained")
    _draw(figure.subplots(), load, title, ticker.EngFormatter(sep=""))
    try:
        figure.savefig(path, dpi=150)
    except OSError as error:
        raise InputError("plot", f"cannot be written: {error}") from None
    return path


def _draw(axes: Any, load: Workload, title: str, engineering: Any) -> None:
    minutes, rates = _corners(load)
    axes.fill_between(minutes, rates, color=_BLUE, alpha=0.15, linewidth=0)
    axes.plot(minutes, rates, color=_BLUE, linewidth=1.4)
    axes.axhline(load.mean_rate, color="0.35", linewidth=0.8, linestyle=(0, (4, 3)))
    axes.annotate(
        "mean",
        (1, load.mean_rate),
        xycoords=("axes fraction", "data"),
        xytext=(4, 0),
        textcoords="offset points",
        va="center",
        color="0.35",
        fontsize=8,
    )
    axes.set_title(title, loc="left", fontsize=11)
    axes.set_xlabel("minutes")
    axes.set_ylabel("records/s")
    axes.set_xlim(0, load.duration_s / 60)
    axes.set_ylim(0, 1.05 * load.peak_rate or 1)
    axes.yaxis.set_major_formatter(engineering)
    axes.grid(axis="y", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def _corners(load: Workload) -> tuple[Sequence[float], Sequence[float]]:
    """Return the line's corners: both ends of every piece, jumps upright."""
    minutes, rates = [], []
    pieces = zip(load.edges_s, load.edges_s[1:], load.starts, load.ends, strict=False)
    for begin_s, end_s, start, end in pieces:
        minutes += [begin_s / 60, end_s / 60]
        rates += [start, end]
    return minutes, rates
