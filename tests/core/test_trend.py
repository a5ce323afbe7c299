"""The one least-squares slope of the project."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.trend import line_at, slope

NUMBERS = st.floats(-1e6, 1e6)


@given(st.lists(st.tuples(st.integers(0, 1000), NUMBERS), min_size=3, max_size=30))
def test_the_slope_is_that_of_numpy(points: list[tuple[int, float]]) -> None:
    if len({x for x, _ in points}) < 2:
        assert slope(points) is None
        return
    x, y = zip(*points, strict=True)
    assert slope(points) == pytest.approx(np.polyfit(x, y, 1)[0], rel=1e-6, abs=1e-3)


def test_a_slope_keeps_its_sign() -> None:
    assert slope([(t, 100 - 3 * t) for t in range(9)]) == pytest.approx(-3)


@pytest.mark.parametrize("points", [[], [(1.0, 2.0)], [(1.0, 2.0), (1.0, 4.0)]])
def test_points_without_a_slope(points: list[tuple[float, float]]) -> None:
    assert slope(points) is None


def test_without_a_slope_the_line_is_the_mean() -> None:
    assert line_at([(1.0, 2.0), (1.0, 4.0)], 9.0) == 3.0
