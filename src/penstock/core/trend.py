"""Least-squares lines through measurements."""

from collections.abc import Sequence


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Return the slope of the least-squares line through points (x, y); None if it has none.

    >>> slope([(0, 10.0), (30, 20.0), (60, 30.0)])
    0.3333333333333333
    """
    if not points:
        return None
    mean_x, mean_y = _means(points)
    spread = sum((px - mean_x) ** 2 for px, _ in points)
    if spread == 0:
        return None
    return sum((px - mean_x) * (py - mean_y) for px, py in points) / spread


def line_at(points: Sequence[tuple[float, float]], x: float) -> float:
    """Return the value at `x` of the least-squares line through points (x, y).

    Without a slope, as with a single point, the value is the mean.

    >>> line_at([(0, 10.0), (30, 20.0), (60, 30.0)], 90)
    40.0
    """
    mean_x, mean_y = _means(points)
    return mean_y + (slope(points) or 0.0) * (x - mean_x)


def _means(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    return sum(px for px, _ in points) / len(points), sum(py for _, py in points) / len(points)
