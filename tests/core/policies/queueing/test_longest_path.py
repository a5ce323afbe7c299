"""Who stands out on long and short paths, against listing all paths."""

from hypothesis import given
from hypothesis import strategies as st

from penstock.core.policies.queueing.longest_path import (
    heaviest_of_a_long_path,
    lightest_of_a_short_path,
)
from penstock.core.topology import Topology


@st.composite
def weighted(draw: st.DrawFn) -> tuple[Topology, dict[str, float], set[str]]:
    names = [f"o{i}" for i in range(draw(st.integers(1, 9)))]
    upstream = {n: [up for up in names[:i] if draw(st.booleans())] for i, n in enumerate(names)}
    graph = Topology.of({n: upstream[n] for n in draw(st.permutations(names))})
    # few different weights, so that ties are common; one of them infinite
    weight = {n: draw(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0, float("inf")])) for n in names}
    spare = {n for n in names if draw(st.booleans())}
    return graph, weight, spare


@given(weighted())
def test_scale_out_finds_the_same_as_listing_all_paths(
    case: tuple[Topology, dict[str, float], set[str]],
) -> None:
    graph, weight, _ = case
    expected = set()
    for path in graph.paths():
        if sum(weight[name] for name in path) > 1.0:
            most = max(weight[name] for name in path)
            in_order = sorted(path, key=graph.order.index)
            expected.add(next(name for name in in_order if weight[name] == most))
    assert heaviest_of_a_long_path(graph, weight, above=1.0) == expected


@given(weighted())
def test_scale_in_finds_the_same_as_listing_all_paths(
    case: tuple[Topology, dict[str, float], set[str]],
) -> None:
    graph, weight, spare = case
    expected = set()
    for path in graph.paths():
        able = sorted((name for name in path if name in spare), key=graph.order.index)
        if able and sum(weight[name] for name in path) < 1.5:
            least = min(weight[name] for name in able)
            expected.add(next(name for name in able if weight[name] == least))
    assert lightest_of_a_short_path(graph, weight, spare, below=1.5) == expected
