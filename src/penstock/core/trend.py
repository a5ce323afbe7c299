"""Straight lines through measurements."""

from collections.abc import Sequence


def line_at(points: Sequence[tuple[float, float]], x: float) -> float:
    """Return the value at `x` of the least-squares line through points (x, y).

    One point, or several at the same place, give their mean.

    >>> line_at([(0, 10.0), (30, 20.0), (60, 30.0)], 90)
    40.0
    """
    n = len(points)
    mean_x = sum(px for px, _ in points) / n
    mean_y = sum(py for _, py in points) / n
    spread = sum((px - mean_x) ** 2 for px, _ in points)
    if spread == 0:
        return mean_y
    slope = sum((px - mean_x) * (py - mean_y) for px, py in points) / spread
    return mean_y + slope * (x - mean_x)
