"""Straight lines through measurements."""

from collections.abc import Sequence


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope of the least-squares line through points (x, y); 0 if it has none.

    >>> slope([(0, 10.0), (30, 20.0), (60, 30.0)])
    0.3333333333333333
    """
    n = len(points)
    mean_x = sum(px for px, _ in points) / n
    mean_y = sum(py for _, py in points) / n
    spread = sum((px - mean_x) ** 2 for px, _ in points)
    if spread == 0:
        return 0.0
    return sum((px - mean_x) * (py - mean_y) for px, py in points) / spread


def line_at(points: Sequence[tuple[float, float]], x: float) -> float:
    """Return the value at `x` of the least-squares line through points (x, y).

    One point, or several at the same place, give their mean.

    >>> line_at([(0, 10.0), (30, 20.0), (60, 30.0)], 90)
    40.0
    """
    n = len(points)
    mean_x = sum(px for px, _ in points) / n
    mean_y = sum(py for _, py in points) / n
    return mean_y + slope(points) * (x - mean_x)
