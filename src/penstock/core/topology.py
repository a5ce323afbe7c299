"""The directed acyclic graph of operators."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from penstock.core.frozen_dict import FrozenDict
from penstock.errors import InputError, nearest


@dataclass(frozen=True, slots=True)
class Topology:
    """Operators and the edges between them, checked to be acyclic.

    `order` is topological; where the graph leaves a choice, operators keep the order
    in which they were declared, so that every policy visits them the same way.

    >>> diamond = Topology.of({"a": [], "c": ["a"], "b": ["a"], "d": ["b", "c"]})
    >>> diamond.order, diamond.sources, diamond.sinks
    (('a', 'c', 'b', 'd'), ('a',), ('d',))
    >>> list(diamond.paths())
    [('a', 'c', 'd'), ('a', 'b', 'd')]
    """

    upstream: Mapping[str, tuple[str, ...]]
    downstream: Mapping[str, tuple[str, ...]]
    order: tuple[str, ...]

    @classmethod
    def of(cls, upstream: Mapping[str, Sequence[str]]) -> "Topology":
        """Build a topology from each operator's list of upstream operators."""
        downstream: dict[str, list[str]] = {name: [] for name in upstream}
        for name, feeders in upstream.items():
            for feeder in feeders:
                if feeder not in downstream:
                    problem = f"unknown upstream operator {feeder!r}"
                    raise InputError(f"{name}.upstream", problem, nearest(feeder, upstream))
                downstream[feeder].append(name)
            if len(set(feeders)) != len(feeders):
                raise InputError(f"{name}.upstream", f"names an operator twice: {list(feeders)}")
        return cls(
            FrozenDict({name: tuple(feeders) for name, feeders in upstream.items()}),
            FrozenDict({name: tuple(fed) for name, fed in downstream.items()}),
            _topological_order(upstream, downstream),
        )

    @property
    def sources(self) -> tuple[str, ...]:
        """Operators that no other operator feeds."""
        return tuple(name for name in self.order if not self.upstream[name])

    @property
    def sinks(self) -> tuple[str, ...]:
        """Operators that feed no other operator."""
        return tuple(name for name in self.order if not self.downstream[name])

    @property
    def edges(self) -> Iterator[tuple[str, str]]:
        """Every edge as (upstream, downstream)."""
        return ((feeder, name) for name in self.order for feeder in self.upstream[name])

    def restrict(self, names: Collection[str]) -> "Topology":
        """Return the graph of these operators alone, with the edges between them.

        >>> Topology.of({"files": [], "parse": ["files"], "store": ["parse"]}).restrict(
        ...     {"parse", "store"}
        ... ).sources
        ('parse',)
        """
        return Topology.of(
            {
                name: [feeder for feeder in feeders if feeder in names]
                for name, feeders in self.upstream.items()
                if name in names
            }
        )

    def paths(self) -> Iterator[tuple[str, ...]]:
        """Every path from a source to a sink. Their number grows exponentially with the graph."""
        stack: list[tuple[str, ...]] = [(source,) for source in reversed(self.sources)]
        while stack:
            path = stack.pop()
            onward = self.downstream[path[-1]]
            if not onward:
                yield path
            stack.extend((*path, name) for name in reversed(onward))

    def sources_of_each(self) -> dict[str, frozenset[str]]:
        """For each operator the sources from which records reach it (itself, if it is one)."""
        reached: dict[str, frozenset[str]] = {}
        for name in self.order:
            feeders = self.upstream[name]
            if len(feeders) == 1:
                reached[name] = reached[feeders[0]]
            else:
                above = frozenset().union(*(reached[feeder] for feeder in feeders))
                reached[name] = above if feeders else frozenset((name,))
        return reached


def _topological_order(
    upstream: Mapping[str, Sequence[str]], downstream: Mapping[str, Sequence[str]]
) -> tuple[str, ...]:
    declared = {name: position for position, name in enumerate(upstream)}
    names = list(upstream)
    waiting = {name: len(feeders) for name, feeders in upstream.items()}
    ready = [declared[name] for name, count in waiting.items() if count == 0]
    heapify(ready)
    order: list[str] = []
    while ready:
        name = names[heappop(ready)]
        order.append(name)
        for fed in downstream[name]:
            waiting[fed] -= 1
            if waiting[fed] == 0:
                heappush(ready, declared[fed])
    if len(order) < len(names):
        cycle = _find_cycle(upstream, {name for name, count in waiting.items() if count})
        raise InputError(
            f"{cycle[0]}.upstream",
            f"operators form a cycle: {' -> '.join(cycle)}",
            "a pipeline is acyclic: remove one of these edges",
        )
    return tuple(order)


def _find_cycle(upstream: Mapping[str, Sequence[str]], stuck: set[str]) -> list[str]:
    # every stuck operator has a stuck upstream one, so walking upstream must come round
    trail = [min(stuck)]
    while True:
        feeder = next(up for up in upstream[trail[-1]] if up in stuck)
        if feeder in trail:
            return [*trail[trail.index(feeder) :], feeder][::-1]
        trail.append(feeder)
