"""The cheapest set of items of a given worth: subset sum by dynamic programming."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.numbers import NOISE

#: Up to this many partial sums the answer is exact; beyond, sums closer than `GRID` are merged.
EXACT = 4096
GRID = 1e-4


@dataclass(frozen=True, slots=True)
class Item:
    """An item with its worth and its cost."""

    name: str
    worth: float
    cost: float


@dataclass(frozen=True, slots=True)
class _Choice:
    worth: float
    cost: float
    names: tuple[str, ...]


def cheapest_worth(items: Sequence[Item], need: float) -> tuple[str, ...] | None:
    """Return the set of at least that worth with the least cost; None if all are not enough.

    Of equally cheap sets the one with fewer items wins, then the one of smaller worth, then
    the first by name. Exact while at most `EXACT` partial sums are worth keeping, which
    covers dozens of items.

    >>> cheapest_worth([Item("a", 0.12, 1), Item("b", 0.12, 1), Item("m", 0.5, 20)], 0.24)
    ('a', 'b')
    """
    choices = [_Choice(0.0, 0.0, ())]
    for item in sorted(items, key=lambda item: item.name):
        grown = [
            _Choice(c.worth + item.worth, c.cost + item.cost, (*c.names, item.name))
            for c in choices
            if c.worth < need - NOISE  # what is enough already only gets costlier
        ]
        choices = _undominated(choices + grown, need)
    enough = [c for c in choices if c.worth >= need - NOISE]
    if not enough:
        return None
    return min(enough, key=lambda c: (c.cost, len(c.names), c.worth, c.names)).names


def _undominated(choices: list[_Choice], need: float) -> list[_Choice]:
    """Drop every choice that another one equals or beats in both worth and cost."""
    # all that suffice are equal in worth here, so that only the cheapest of them stays
    choices.sort(key=lambda c: (-min(c.worth, need), c.cost, len(c.names), c.worth, c.names))
    kept: list[_Choice] = []
    for choice in choices:
        if not kept or choice.cost < kept[-1].cost:
            kept.append(choice)
    return kept if len(kept) <= EXACT else _thinned(kept)


def _thinned(choices: list[_Choice]) -> list[_Choice]:
    by_cell: dict[int, _Choice] = {}
    for choice in choices:  # in falling worth, so that the cheapest of a cell comes last
        by_cell[int(choice.worth / GRID)] = choice
    return list(by_cell.values())
