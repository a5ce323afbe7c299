"""Grids: decimal steps, cells, refusals."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.errors import InputError
from penstock.pubsub.spaces.grid import MAX_VALUES, NumberGrid

PRICES = NumberGrid(low=-1, high=2, step=0.01)


@given(hundredths=st.integers(-100, 200))
def test_every_decimal_on_the_grid_has_its_cell(hundredths: int) -> None:
    assert PRICES.find_cell(hundredths / 100) == hundredths + 101


@given(bound=st.floats(-1.5, 2.5))
def test_the_first_cell_of_a_bound_is_the_first_value_not_below_it(bound: float) -> None:
    cells = [cell for cell in range(1, 302) if (cell - 101) / 100 >= bound]
    assert PRICES.find_first_cell(bound) == (cells[0] if cells else PRICES.cells)


def test_the_largest_grid() -> None:
    grid = NumberGrid(low=0, high=MAX_VALUES - 1, step=1)
    assert grid.cells == MAX_VALUES + 1
    assert grid.find_cell(MAX_VALUES - 1) == MAX_VALUES


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"low": 0, "high": MAX_VALUES, "step": 1}, "4,294,967,297 values"),
        ({"low": 0, "high": 1, "step": 0.3}, "whole steps"),
        ({"low": 1, "high": 1, "step": 1}, "above low"),
        ({"low": 0, "high": 1, "step": 0}, "above 0"),
        ({"low": 0, "high": float("inf"), "step": 1}, "finite"),
        ({"low": float("nan"), "high": 1, "step": 1}, "finite"),
        ({"low": "0", "high": 1, "step": 1}, "must be a number"),
        ({"low": True, "high": 2, "step": 1}, "must be a number"),
        ({"low": 1e16, "high": 1e16 + 2, "step": 1}, "too small"),
    ],
)
def test_grids_that_cannot_be_are_refused(fields: dict[str, float], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        NumberGrid(**fields)


@pytest.mark.parametrize("value", [0.005, 0.1 + 0.2 - 0.0 + 1e-9, 2.01, -1.01, float("nan")])
def test_values_off_the_grid_are_refused(value: float) -> None:
    with pytest.raises(InputError, match="must be"):
        PRICES.find_cell(value)
