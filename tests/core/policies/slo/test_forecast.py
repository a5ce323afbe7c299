"""Forecasts: what they follow, what they do not fall for, and how often their bound holds."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.policies.slo.forecast import FIRST_MARGIN, find_period, forecast, peak_of_next

NOISE = np.random.default_rng(3).uniform(0, 100, 90).tolist()
RATES = st.lists(st.floats(0, 1e9), min_size=1, max_size=60)


@given(rates=RATES, steps=st.integers(1, 8), share=st.floats(0.5, 0.999))
def test_the_bound_is_never_below_the_mean_and_nothing_is_negative(
    rates: list[float], steps: int, share: float
) -> None:
    result = forecast(rates, steps, share)
    assert 0 <= result.mean <= result.upper < math.inf


def test_without_history_the_bound_is_a_fixed_margin() -> None:
    result = forecast([100.0, 100.0], steps=2, share=0.99)
    assert (result.mean, result.upper) == (100.0, 100.0 * (1 + FIRST_MARGIN))


def test_a_step_is_followed_and_a_spike_is_not_a_trend() -> None:
    step = forecast([100.0] * 30 + [200.0] * 4, steps=2, share=0.9)
    assert 190 <= step.mean <= 210
    spike = forecast([100.0] * 30 + [200.0] + [100.0] * 3, steps=2, share=0.9)
    assert 85 <= spike.mean <= 115


def test_a_ramp_is_predicted_ahead_of_its_present_level() -> None:
    ramp = [100.0 + 10 * i for i in range(40)]
    assert forecast(ramp, steps=3, share=0.9).mean > ramp[-1]


def test_a_season_is_found_and_used() -> None:
    wave = [1000 + 800 * math.sin(2 * math.pi * i / 40) for i in range(100)]
    result = forecast(wave, steps=4, share=0.99)
    assert result.period == 40
    assert result.mean == pytest.approx(max(wave[i - 40] for i in range(100, 104)), rel=0.02)


@pytest.mark.parametrize(
    "rates",
    [
        pytest.param([100.0] * 90, id="constant"),
        pytest.param([100.0 + 5 * i for i in range(90)], id="rising"),
        pytest.param(NOISE, id="noise"),
        pytest.param([1.0, 2.0], id="short"),
    ],
)
def test_what_repeats_nothing_has_no_season(rates: list[float]) -> None:
    assert find_period(np.array(rates)) is None


def test_the_bound_holds_as_often_as_asked() -> None:
    """On a wandering noisy rate, the peak of the next steps exceeds the bound in about 5 %."""
    rng, rates, level = random.Random(11), [], 1000.0
    for _ in range(700):
        level = max(200.0, level + rng.gauss(0, 10))
        rates.append(level * rng.uniform(0.9, 1.1))
    happened = peak_of_next(np.array(rates), 3)
    exceeded = [
        happened[i] > forecast(rates[max(0, i - 200) : i + 1], steps=3, share=0.95).upper
        for i in range(220, len(rates) - 3)
    ]
    assert 0.01 <= np.mean(exceeded) <= 0.09


def test_the_bound_does_not_exceed_what_was_ever_seen_or_is_expected() -> None:
    """A spike of the past is not added to the crest of the present."""
    rates = [100.0] * 20 + [400.0] + [100.0] * 20 + [300.0] * 10
    assert forecast(rates, steps=2, share=0.99).upper == 400.0
