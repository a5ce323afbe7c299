"""States from which nothing leads to rest are found, also if something always happens there."""

from array import array

import pytest

from penstock.decentralized.checker.exploration import StateGraph
from penstock.decentralized.checker.liveness import find_endless_state


def graph(states: int, steps: list[tuple[int, int]], quiet: list[int]) -> StateGraph:
    """A graph of states without contents."""
    return StateGraph(
        states=[b""] * states,
        sources=array("I", [source for source, _ in steps]),
        targets=array("I", [target for _, target in steps]),
        quiet=array("I", quiet),
    )


@pytest.mark.parametrize(
    ("steps", "quiet", "endless"),
    [
        ([(0, 1), (1, 2), (2, 3)], [3], None),
        ([(0, 1), (1, 0), (1, 2), (2, 3)], [3], None),  # a cycle that can be left
        ([(0, 3), (0, 1), (1, 2), (2, 1)], [3], 1),  # a cycle that cannot
        ([(0, 1), (1, 3), (0, 2)], [3], 2),  # a dead end
        ([], [], 0),
    ],
)
def test_an_endless_state_is_found(
    steps: list[tuple[int, int]], quiet: list[int], endless: int | None
) -> None:
    assert find_endless_state(graph(4, steps, quiet)) == endless
