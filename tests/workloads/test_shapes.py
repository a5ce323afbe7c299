"""What each other pattern promises about its shape."""

import math

import numpy as np
import pytest

from penstock.workloads.registry import make_workload


def test_a_ramp_is_straight() -> None:
    load = make_workload("ramp", 10, given={"start": 100, "end": 700})
    assert [load.rate(t) for t in (0, 300, 450)] == [100, 400, 550]
    assert load.total_records == 400 * 600


def test_a_trapezoid_goes_up_stays_and_goes_down_to_nothing() -> None:
    load = make_workload("trapezoid", 50)
    assert [load.rate(60 * m) for m in (0, 10, 20, 25, 30, 40)] == [0, 175, 350, 350, 350, 175]
    assert load.integral(3000) == pytest.approx(350 * 60 * (10 + 10 + 10))


def test_a_trapezoid_may_be_a_triangle_or_a_box() -> None:
    assert make_workload("trapezoid", 9, given={"rise": 0, "fall": 0}).starts == (350.0,)
    triangle = make_workload("trapezoid", 10, given={"rise": 0.1, "fall": 0.9})
    assert triangle.peak_rate == 350 and triangle.rate(330) == pytest.approx(175)


def test_steps_hold_10_minutes_each_and_begin_again() -> None:
    load = make_workload("steps", 35, given={"rates": "20, 60"})
    assert load.mean_rates().tolist() == [20] * 10 + [60] * 10 + [20] * 10 + [60] * 5


def test_the_sinus_follows_the_formula_through_the_week() -> None:
    load = make_workload("sinus", 140, given={"mean": 1000, "swing": 0.5, "weekend": 0.25})
    for t_s in np.linspace(1, 8399, 200):
        day = t_s / 1200
        share = 1 if day < 5 else 0.25
        formula = 1000 * share * (1 - 0.5 * math.cos(2 * math.pi * day))
        assert load.rate(float(t_s)) == pytest.approx(formula, rel=1e-4)
    assert load.total_records == pytest.approx(1000 * 1200 * 5.5, abs=1)


def test_the_market_opens_sharply_spikes_in_the_afternoon_and_calms_down() -> None:
    # 40 minutes, as published: 3 minutes an hour from 5:30 on
    load = make_workload("market", 40, given={"noise": 0})
    opening_s, spike_s, close_s = 3.5 * 180, 10 * 180, 12 * 180
    assert load.rate(opening_s + 20) > 5 * load.rate(opening_s - 20)
    assert load.rate(spike_s) == load.peak_rate == pytest.approx(190)
    assert load.rate(close_s + 40) < 0.6 * load.rate(close_s)


def test_brownian_changes_have_the_deviation_asked_for() -> None:
    given = {"start": 5e8, "max": 1e9, "sigma": 1000, "drift": 50}
    moves = np.diff(make_workload("brownian", 4000, given=given).mean_rates())
    assert moves.std() == pytest.approx(1000, rel=0.05)
    assert moves.mean() == pytest.approx(50, abs=60)


def test_brownian_motion_stays_between_its_mirrors() -> None:
    rates = make_workload("brownian", 3000, given={"start": 5, "max": 10, "sigma": 8}).mean_rates()
    assert rates.min() >= 0 and rates.max() <= 10
    assert rates.mean() == pytest.approx(5, abs=0.4)


def test_dns_has_the_mean_asked_for_and_bursts_far_above_it() -> None:
    load = make_workload("dns", 300, given={"mean": 500})
    assert load.mean_rate == pytest.approx(500)
    assert load.peak_rate > 5 * 500
    assert np.median(load.mean_rates(10)) < 500
