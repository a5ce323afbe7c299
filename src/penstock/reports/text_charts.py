"""Text charts, and short forms of numbers and times for their labels."""

import math
import shutil
from collections.abc import Callable, Sequence

from penstock.core.numbers import pretty

_BLOCKS = "▁▂▃▄▅▆▇█"
_MAX_WIDTH, _MIN_WIDTH = 100, 20

#: Values over time; None where unknown.
Series = Sequence[float | None]


def chart_width(margin: int = 2) -> int:
    """Return the columns of the terminal that a chart can use."""
    return max(_MIN_WIDTH, min(shutil.get_terminal_size().columns, _MAX_WIDTH) - margin)


def sparkline(rates: Sequence[float]) -> str:
    """Draw rates as blocks, from 0 to the highest.

    >>> sparkline([0, 1, 2, 3, 4, 5, 6, 7])
    '▁▂▃▄▅▆▇█'
    """
    top = max(rates) or 1.0
    return "".join(_BLOCKS[round(rate / top * (len(_BLOCKS) - 1))] for rate in rates)


def chart(values: Series, rows: int) -> list[str]:
    """Draw values from 0 to the highest, several rows high; unknown values stay empty.

    >>> print("\\n".join(chart([1, 2, 3, None, 4], rows=2)))
      ▄ █
    ▄██ █
    """
    top = max((value for value in values if value is not None), default=0.0) or 1.0
    heights = [None if v is None else max(1, round(v / top * rows * len(_BLOCKS))) for v in values]
    lines = []
    for row in range(rows - 1, -1, -1):
        parts = [0 if h is None else min(h - row * len(_BLOCKS), len(_BLOCKS)) for h in heights]
        lines.append("".join(_BLOCKS[part - 1] if part > 0 else " " for part in parts))
    return lines


def mean(values: Sequence[float]) -> float:
    """Return the mean."""
    return sum(values) / len(values)


def resample(
    values: Series, width: int, pick: Callable[[Sequence[float]], float] = mean
) -> list[float | None]:
    """Return one value for each of `width` equal parts; None for a part without values.

    >>> resample([1, 3, None, 5, None, None], 3)
    [2.0, 5.0, None]
    """
    picked: list[float | None] = []
    for i in range(width):
        first = i * len(values) // width
        last = max(first + 1, (i + 1) * len(values) // width)
        known = [value for value in values[first:last] if value is not None]
        picked.append(pick(known) if known else None)
    return picked


def short(value: float | None) -> str:
    """Write a number in few characters, for the side of a chart.

    >>> [short(v) for v in (2_227_166, 35_000, 12.345, 0.0312, None)]
    ['2.23 M', '35 k', '12.3', '0.0312', '-']
    """
    if value is None:
        return "-"
    for size, sign in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if abs(value) >= 9.995 * size / 10 and value:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def clock(seconds: float) -> str:
    """Write a time of a run as hours, minutes and seconds.

    >>> clock(75), clock(8400), clock(2.5)
    ('0:01:15', '2:20:00', '0:00:02.5')
    """
    whole = math.floor(seconds)
    rest = f"{seconds - whole:.3f}".strip("0").rstrip(".") if seconds != whole else ""
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}{rest}"


def minutes(seconds: float) -> str:
    """Write a length in minutes.

    >>> minutes(8400)
    '140 min'
    """
    return f"{pretty(seconds / 60)} min"
