"""Which operators stand out on a path that is too long or short, without listing the paths.

Paths grow exponentially with the graph, so they are not listed. An operator is the
heaviest of some long path exactly if the longest path through it, over operators that
are not heavier, is long; and the lightest of some short path exactly if the shortest
path through it, over operators that may stand beside it, is short. Equal weights go to
the operator that comes first in topological order.
"""

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from penstock.core.topology import Topology

Best = Callable[[float, float], float]


def heaviest_of_a_long_path(
    graph: Topology, weight: Mapping[str, float], *, above: float
) -> set[str]:
    """Operators that are the heaviest on a source-to-sink path whose sum exceeds `above`.

    >>> chain = Topology.of({"a": [], "b": ["a"], "c": ["b"]})
    >>> heaviest_of_a_long_path(chain, {"a": 0.2, "b": 0.7, "c": 0.3}, above=1.0)
    {'b'}
    """
    rank = _ranks(graph, lambda name: weight[name])
    search = _Search(graph, weight, rank, max, -math.inf)
    return {name for name in graph.order if search.through(name) > above}


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
    search = _Search(graph, weight, rank, min, math.inf)
    return {name for name in graph.order if name in spare and search.through(name) < below}


def _ranks(graph: Topology, weight: Callable[[str], float]) -> dict[str, int]:
    """Number operators from the least outstanding up; of equals, the first in order stands out."""
    position = {name: place for place, name in enumerate(graph.order)}
    ordered = sorted(graph.order, key=lambda name: (weight(name), -position[name]))
    return {name: place for place, name in enumerate(ordered)}


class _Search:
    """Best path sums through one operator over operators of no higher rank."""

    def __init__(
        self,
        graph: Topology,
        weight: Mapping[str, float],
        rank: Mapping[str, int],
        best: Best,
        none: float,
    ) -> None:
        self.graph, self.weight, self.rank, self.best, self.none = graph, weight, rank, best, none
        # the lowest rank that somebody must have on the way from a source, or to a sink
        self.gate_in = self._gates(graph.order, graph.upstream)
        self.gate_out = self._gates(graph.order[::-1], graph.downstream)

    def through(self, name: str) -> float:
        """The best sum over a source-to-sink path through `name`, or `none`."""
        top = self.rank[name]
        if self.gate_in[name] > top or self.gate_out[name] > top:
            return self.none  # somebody outranks it on every path: most operators end here
        before = self._one_way(name, self.graph.upstream, self.gate_in)
        after = self._one_way(name, self.graph.downstream, self.gate_out)
        return before + after - self.weight[name] if math.isfinite(self.weight[name]) else before

    def _gates(self, order: Sequence[str], inward: Mapping[str, tuple[str, ...]]) -> dict[str, int]:
        gates: dict[str, int] = {}
        for name in order:
            lowest = min((gates[other] for other in inward[name]), default=-1)
            gates[name] = max(lowest, self.rank[name])
        return gates

    def _one_way(
        self, name: str, inward: Mapping[str, tuple[str, ...]], gates: Mapping[str, int]
    ) -> float:
        """The best sum from an end of the graph to `name`, visiting only what may stand there."""
        top = self.rank[name]
        sums: dict[str, float] = {}
        stack = [name]
        while stack:
            here = stack[-1]
            allowed = [other for other in inward[here] if gates[other] <= top]
            waiting = [other for other in allowed if other not in sums]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            sums[here] = self.weight[here] + self._choose(sums[other] for other in allowed)
        return sums[name]

    def _choose(self, sums: Iterable[float]) -> float:
        chosen = None
        for value in sums:
            chosen = value if chosen is None else self.best(chosen, value)
        return chosen or 0.0
