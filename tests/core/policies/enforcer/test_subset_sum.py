"""Subset sum against brute force."""

import random
from itertools import combinations

import pytest

from penstock.core.policies.enforcer import subset_sum as subset
from penstock.core.policies.enforcer.subset_sum import Item, cheapest_worth


def brute_force(items: list[Item], need: float) -> float | None:
    costs = [
        sum(item.cost for item in chosen)
        for size in range(len(items) + 1)
        for chosen in combinations(items, size)
        if sum(item.worth for item in chosen) >= need - 1e-9
    ]
    return min(costs, default=None)


@pytest.mark.parametrize("seed", range(30))
def test_the_cheapest_set_is_found_among_up_to_14_slices(seed: int) -> None:
    rng = random.Random(seed)
    items = [
        Item(f"s{i}", rng.random() * 0.3, rng.choice([rng.random() * 20, 1.0, 0.0]))
        for i in range(rng.randint(1, 14))
    ]
    need = rng.random() * 1.2
    chosen = cheapest_worth(items, need)
    best = brute_force(items, need)
    if best is None:
        assert chosen is None
        return
    assert chosen is not None
    by_name = {item.name: item for item in items}
    assert sum(by_name[name].worth for name in chosen) >= need - 1e-9
    assert sum(by_name[name].cost for name in chosen) == pytest.approx(best)


def test_of_equally_cheap_sets_the_smaller_one_wins() -> None:
    items = [Item("a", 0.2, 1), Item("b", 0.2, 1), Item("c", 0.4, 2)]
    assert cheapest_worth(items, 0.4) == ("c",)


def test_many_slices_are_thinned_and_still_suffice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subset, "EXACT", 64)
    rng = random.Random(7)
    items = [Item(f"s{i}", rng.random() * 0.05, rng.random()) for i in range(60)]
    chosen = cheapest_worth(items, 0.5)
    assert chosen is not None
    assert sum(item.worth for item in items if item.name in chosen) >= 0.5
