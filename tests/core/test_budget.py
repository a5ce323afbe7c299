"""Budgets by largest remainder."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.guards import fit_budget
from penstock.errors import InputError


@pytest.mark.parametrize(
    ("demands", "budget", "fitted"),
    [
        ((10, 30, 20), 30, (5, 15, 10)),
        ((20, 62, 20), 80, (16, 48, 16)),
        ((3, 3, 3, 3), 10, (3, 3, 2, 2)),
        ((1, 1), 2, (1, 1)),
        ((4, 5), 20, (4, 5)),
    ],
)
def test_worked_examples(demands: tuple[int, ...], budget: int, fitted: tuple[int, ...]) -> None:
    named = {f"o{i}": d for i, d in enumerate(demands)}
    assert tuple(fit_budget(named, budget).values()) == fitted


@given(st.lists(st.integers(1, 500), min_size=1, max_size=12), st.data())
def test_the_sum_is_exact_nobody_falls_below_one_and_order_is_kept(
    demands: list[int], data: st.DataObject
) -> None:
    budget = data.draw(st.integers(len(demands), sum(demands) + 10))
    named = {f"o{i}": d for i, d in enumerate(demands)}
    fitted = fit_budget(named, budget)
    assert sum(fitted.values()) == min(budget, sum(demands))
    for name, demand in named.items():
        assert 1 <= fitted[name] <= demand
        for other, its_demand in named.items():
            if demand > its_demand:
                assert fitted[name] >= fitted[other]


def test_a_budget_below_the_number_of_operators_is_an_error() -> None:
    with pytest.raises(InputError, match="2 cannot give each of 3 operators a replica"):
        fit_budget({"a": 1, "b": 1, "c": 1}, 2)
