"""Forecasts: what they follow, what they do not fall for, and how often their bound holds."""

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.core.policies.slo.forecast import FIRST_MARGIN, find_period, forecast, list_next

NOISE = np.random.default_rng(3).uniform(0, 100, 90).tolist()
RATES = st.lists(st.floats(0, 1e9), min_size=1, max_size=60)


@given(rates=RATES, steps=st.integers(1, 8))
def test_nothing_is_negative_or_above_what_was_seen_or_is_expected(
    rates: list[float], steps: int
) -> None:
    result = forecast(rates, steps)
    assert result.expected.shape == (steps,) and result.scenarios.shape[1] == steps
    assert np.all(result.expected >= 0) and np.all(result.scenarios >= 0)
    highest = np.maximum(result.expected, max(rates)) * (1 + FIRST_MARGIN)
    assert np.all(result.scenarios <= highest * (1 + 1e-9))


def test_without_history_the_only_scenario_is_a_fixed_margin() -> None:
    result = forecast([100.0, 100.0], steps=2)
    assert result.expected.tolist() == [100.0, 100.0]
    assert result.scenarios.tolist() == [[100.0 * (1 + FIRST_MARGIN)] * 2]


def test_a_step_is_followed_and_a_spike_is_not_a_trend() -> None:
    step = forecast([100.0] * 30 + [200.0] * 4, steps=2)
    assert np.all((step.expected >= 185) & (step.expected <= 215))
    spike = forecast([100.0] * 30 + [200.0] + [100.0] * 3, steps=2)
    assert np.all((spike.expected >= 85) & (spike.expected <= 115))


def test_a_ramp_is_predicted_ahead_of_its_present_level() -> None:
    ramp = [100.0 + 10 * i for i in range(40)]
    assert np.all(forecast(ramp, steps=3).expected > ramp[-1])


def test_a_season_is_found_and_used() -> None:
    wave = [1000 + 800 * math.sin(2 * math.pi * i / 40) for i in range(100)]
    result = forecast(wave, steps=4)
    assert result.period == 40
    assert result.expected == pytest.approx([wave[i - 40] for i in range(100, 104)], rel=0.02)


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


def test_scenarios_are_exceeded_as_often_as_their_quantile_says() -> None:
    """On a wandering noisy rate, the sum of the next steps exceeds the quantile in about 5 %."""
    rng, rates, level = random.Random(11), [], 1000.0
    for _ in range(700):
        level = max(200.0, level + rng.gauss(0, 10))
        rates.append(level * rng.uniform(0.9, 1.1))
    happened = list_next(np.array(rates), 3).sum(axis=1)
    exceeded = []
    for i in range(220, len(rates) - 3):
        scenarios = forecast(rates[i - 200 : i + 1], steps=3).scenarios.sum(axis=1)
        exceeded.append(happened[i] > np.quantile(scenarios, 0.95))
    assert 0.01 <= np.mean(exceeded) <= 0.09


def test_a_burst_of_the_past_is_a_scenario_with_its_shape() -> None:
    rng = random.Random(5)
    rates = [rng.uniform(90, 110) for _ in range(60)]
    for at in (13, 22, 47):
        rates[at] = 400.0
    scenarios = forecast(rates, steps=3).scenarios
    assert np.max(scenarios) > 350
    # one step long, as it was
    assert np.max(np.sort(scenarios, axis=1)[:, -2]) < 250


def test_errors_are_smaller_while_the_rate_is_lower() -> None:
    rng = random.Random(2)
    busy = [rng.uniform(900, 1100) for _ in range(60)]
    quiet = forecast([*busy, *(100.0 for _ in range(4))], steps=1)
    assert np.quantile(quiet.scenarios, 0.9) < 100 + 0.5 * (max(busy) - 900)
