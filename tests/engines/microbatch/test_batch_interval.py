"""Intervals between batches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.engines.microbatch.batch_interval import (
    MAX_INTERVAL_S,
    OverheadLimit,
    OverheadPeriod,
    choose_interval_s,
    compute_interval_s,
    estimate_overhead_s,
)

LIMIT = OverheadLimit(share=0.2, cores=2)


@given(
    overhead_s=st.floats(0.001, 0.5),
    operators=st.integers(1, 60),
    share=st.floats(0.05, 1.0),
    cores=st.integers(1, 64),
)
def test_batches_at_the_interval_use_the_share_and_no_more(
    overhead_s: float, operators: int, share: float, cores: int
) -> None:
    interval_s = compute_interval_s(overhead_s, operators, OverheadLimit(share=share, cores=cores))
    used = operators * overhead_s / max(interval_s, 0.0005) / cores
    if interval_s < MAX_INTERVAL_S:
        # intervals are whole milliseconds
        assert operators * overhead_s / (interval_s + 0.0005) / cores <= share * 1.0001
    if interval_s > 0.01:
        assert used > share * 0.9 or interval_s == MAX_INTERVAL_S


def test_the_cheapest_period_counts_and_short_ones_do_not() -> None:
    periods = [OverheadPeriod(4.0, 10, 1), OverheadPeriod(1.0, 20, 1), OverheadPeriod(0.01, 4, 1)]
    assert estimate_overhead_s(periods) == pytest.approx(0.05)
    assert estimate_overhead_s(periods[2:]) is None


def test_an_interval_stays_while_it_is_about_right() -> None:
    periods = [OverheadPeriod(1.0, 20, 3)]  # 0.05 s each: 0.375 s between batches
    assert choose_interval_s(0.5, periods, LIMIT) == pytest.approx(0.375)
    assert choose_interval_s(0.4, periods, LIMIT) == 0.4
    assert choose_interval_s(0.1, periods, LIMIT) == pytest.approx(0.375)
    assert choose_interval_s(0.5, [], LIMIT) == 0.5
