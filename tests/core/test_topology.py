"""Graphs of operators."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.topology import Topology
from penstock.errors import InputError


@st.composite
def graphs(draw: st.DrawFn, most: int = 8) -> dict[str, list[str]]:
    """Random acyclic graphs, declared in any order."""
    names = [f"o{i}" for i in range(draw(st.integers(1, most)))]
    upstream = {
        name: [up for up in names[:i] if draw(st.booleans())] for i, name in enumerate(names)
    }
    order = draw(st.permutations(names))
    return {name: upstream[name] for name in order}


@given(graphs())
def test_every_operator_comes_after_those_that_feed_it(upstream: dict[str, list[str]]) -> None:
    order = Topology.of(upstream).order
    assert sorted(order) == sorted(upstream)
    for name, feeders in upstream.items():
        assert all(order.index(feeder) < order.index(name) for feeder in feeders)


@given(graphs())
def test_paths_run_from_sources_to_sinks_along_edges(upstream: dict[str, list[str]]) -> None:
    graph = Topology.of(upstream)
    paths = list(graph.paths())
    assert len(set(paths)) == len(paths)
    assert {path[0] for path in paths} == set(graph.sources)
    assert {path[-1] for path in paths} == set(graph.sinks)
    for path in paths:
        assert all((a, b) in set(graph.edges) for a, b in pairwise(path))


@given(graphs())
def test_sources_of_each_operator_are_the_sources_of_its_paths(
    upstream: dict[str, list[str]],
) -> None:
    graph = Topology.of(upstream)
    reached: dict[str, set[str]] = {name: set() for name in upstream}
    for path in graph.paths():
        for name in path:
            reached[name].add(path[0])
    assert graph.sources_of_each() == reached


def test_an_unknown_upstream_is_named_with_the_nearest_name() -> None:
    with pytest.raises(InputError) as caught:
        Topology.of({"source": [], "map": ["sorce"]})
    assert caught.value.field == "map.upstream"
    assert caught.value.hint == "did you mean 'source'?"


@pytest.mark.parametrize(
    "upstream",
    [
        pytest.param({"a": ["a"]}, id="an operator that feeds itself"),
        pytest.param({"s": [], "a": ["s", "c"], "b": ["a"], "c": ["b"]}, id="a cycle of three"),
    ],
)
def test_a_cycle_is_shown(upstream: dict[str, list[str]]) -> None:
    with pytest.raises(InputError, match=r"form a cycle: (a -> a|.* -> .* -> .*)"):
        Topology.of(upstream)


def test_an_upstream_named_twice_is_refused() -> None:
    with pytest.raises(InputError, match="twice"):
        Topology.of({"a": [], "b": ["a", "a"]})
