"""Finds the heaviest operators of long paths and the lightest of short ones, without listing paths.

Paths grow exponentially with the graph, so they are not listed. An operator is the
heaviest of some long path exactly if the longest path through it, over operators that
are not heavier, is long; and the lightest of some short path exactly if the shortest
path through it, over operators that may stand beside it, is short. Equal weights go to
the operator that comes first in topological order.

Three sums, computed for all operators at once, decide almost every operator. Only the rest is
searched, so the cost grows about linearly with the graph.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from penstock.core.topology import Topology

Best = Callable[[Iterable[float]], float]
Neighbours = Mapping[str, tuple[str, ...]]


def heaviest_of_a_long_path(
    graph: Topology, weight: Mapping[str, float], *, above: float
) -> set[str]:
    """Operators that are the heaviest on a source-to-sink path whose sum exceeds `above`.

    >>> chain = Topology.of({"a": [], "b": ["a"], "c": ["b"]})
    >>> heaviest_of_a_long_path(chain, {"a": 0.2, "b": 0.7, "c": 0.3}, above=1.0)
    {'b'}
    """
    rank = _ranks(graph, lambda name: weight[name])
    search = _Search(graph, weight, rank, max)
    return {name for name in graph.order if search.finds(name, lambda total: total > above)}


def lightest_of_a_short_path(
    graph: Topology, weight: Mapping[str, float], spare: Collection[str], *, below: float
) -> set[str]:
    """Operators of `spare` that are the lightest of these on a path whose sum is under `below`.

    Operators that have nothing to spare may be as light as they like.

    >>> chain = Topology.of({"a": [], "b": ["a"], "c": ["b"]})
    >>> lightest_of_a_short_path(chain, {"a": 0.1, "b": 0.2, "c": 0.1}, {"b", "c"}, below=0.5)
    {'c'}
    """
    rank = _ranks(graph, lambda name: -weight[name] if name in spare else -math.inf)
    search = _Search(graph, weight, rank, min)
    able = [name for name in graph.order if name in spare]
    return {name for name in able if search.finds(name, lambda total: total < below)}


def _ranks(graph: Topology, weight: Callable[[str], float]) -> dict[str, int]:
    """Rank operators by weight; of equals, the first in order has the highest rank."""
    position = {name: place for place, name in enumerate(graph.order)}
    ordered = sorted(graph.order, key=lambda name: (weight(name), -position[name]))
    return {name: place for place, name in enumerate(ordered)}


class _Search:
    """Searches paths through an operator over operators of no higher rank, by their sum."""

    def __init__(
        self, graph: Topology, weight: Mapping[str, float], rank: Mapping[str, int], best: Best
    ) -> None:
        self.weight, self.rank, self.best = weight, rank, best
        self.before = _Side(self, graph.order, graph.upstream)
        self.after = _Side(self, graph.order[::-1], graph.downstream)

    def finds(self, name: str, reaches: Callable[[float], bool]) -> bool:
        """Return whether the best such sum meets the condition."""
        top = self.rank[name]
        if self.before.gate[name] > top or self.after.gate[name] > top:
            return False  # another operator outranks it on every path: the usual case
        if not reaches(self._joined(name, self.before.free, self.after.free)):
            return False  # no path through it meets the condition, whatever the ranks
        if reaches(self._joined(name, self.before.gated, self.after.gated)):
            return True  # a permitted path meets it
        before, after = self.before.search(name), self.after.search(name)
        return reaches(self._joined(name, {name: before}, {name: after}))

    def _joined(self, name: str, before: Mapping[str, float], after: Mapping[str, float]) -> float:
        own = self.weight[name]  # counted on both sides
        return before[name] + after[name] - own if math.isfinite(own) else own


class _Side:
    """One half of the paths: from the sources to an operator, or from it to the sinks."""

    def __init__(self, search: _Search, order: Sequence[str], inward: Neighbours) -> None:
        self.weight, self.rank, self.best = search.weight, search.rank, search.best
        self.inward = inward
        #: The lowest rank that the highest on the way can have, and the sum of such a way.
        self.gate: dict[str, int] = {}
        self.gated: dict[str, float] = {}
        #: The best sum over all operators, whatever their rank.
        self.free: dict[str, float] = {}
        for name in order:
            others, own = inward[name], self.weight[name]
            lowest = min((self.gate[other] for other in others), default=-1)
            self.gate[name] = max(lowest, self.rank[name])
            allowed = [self.gated[other] for other in others if self.gate[other] == lowest]
            self.gated[name] = own + self._best(allowed)
            self.free[name] = own + self._best([self.free[other] for other in others])

    def search(self, name: str) -> float:
        """Return the best sum from this side's end to `name`, over no operator of higher rank."""
        top = self.rank[name]
        sums: dict[str, float] = {}
        stack = [name]
        while stack:
            here = stack[-1]
            allowed = [other for other in self.inward[here] if self.gate[other] <= top]
            waiting = [other for other in allowed if other not in sums]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            sums[here] = self.weight[here] + self._best([sums[other] for other in allowed])
        return sums[name]

    def _best(self, sums: list[float]) -> float:
        return self.best(sums) if sums else 0.0
