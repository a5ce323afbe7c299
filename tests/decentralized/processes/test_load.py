"""Loads stay between their bounds, and the same seed gives the same load."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.decentralized.processes.load import LOADS, STEP_S, brownian, wave


@given(st.sampled_from(sorted(LOADS)), st.integers(0, 99), st.floats(0.1, 60))
def test_a_load_stays_between_its_bounds(name: str, seed: int, interval_s: float) -> None:
    rate = LOADS[name](10, 80, interval_s, seed)
    assert all(10 - 1e-9 <= rate(step) <= 80 + 1e-9 for step in range(200))


def test_a_wave_returns_after_ten_decisions() -> None:
    rate = wave(10, 80, 1.0, 0)
    period = round(10 / STEP_S)
    assert rate(0) == rate(period) == 10
    assert rate(period // 2) == pytest.approx(80)


def test_a_brownian_load_depends_on_its_seed_only() -> None:
    paths = [[brownian(0, 1, 1.0, seed)(step) for step in range(50)] for seed in (1, 1, 2)]
    assert paths[0] == paths[1] != paths[2]
    rate = brownian(0, 1, 1.0, 1)
    assert [rate(step) for step in reversed(range(50))] == paths[0][::-1]
