"""Draws of many events at once are those of each by itself."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.nexmark.one_event import Source

from penstock.nexmark.splitmix import Draws

SEEDS = st.lists(st.integers(0, 2**62), min_size=1, max_size=40)
#: Small ones, powers of two, and large ones, where half of all draws are drawn again.
BOUNDS = st.one_of(
    st.integers(1, 1200), st.sampled_from([1 << n for n in range(31)]), st.just((1 << 30) + 1)
)


@given(SEEDS, st.lists(BOUNDS, min_size=1, max_size=6))
def test_bounded_draws_of_all_rows(seeds: list[int], bounds: list[int]) -> None:
    draws, sources = Draws(np.array(seeds)), [Source(seed) for seed in seeds]
    for bound in bounds:
        assert draws.below(bound).tolist() == [source.below(bound) for source in sources]
    # what was drawn again must not have moved the others
    assert draws.bits().tolist() == [source.bits() for source in sources]


@given(SEEDS, st.data())
def test_bounds_and_rows_of_their_own(seeds: list[int], data: st.DataObject) -> None:
    draws, sources = Draws(np.array(seeds)), [Source(seed) for seed in seeds]
    for _ in range(3):
        rows = data.draw(st.lists(st.integers(0, len(seeds) - 1), unique=True))
        bounds = data.draw(st.lists(BOUNDS, min_size=len(rows), max_size=len(rows)))
        drawn = draws.below(np.array(bounds, np.int64), np.array(rows, np.intp))
        assert drawn.tolist() == [
            sources[row].below(bound) for row, bound in zip(rows, bounds, strict=True)
        ]
    assert draws.uniform().tolist() == [source.uniform() for source in sources]
