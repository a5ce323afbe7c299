"""Decisions as values."""

import json

import pytest

from penstock.core.decision import Decision, Move, Placement, Target, keep
from penstock.core.histogram import Histogram
from penstock.core.reasons import Reason, read_reason


def test_a_decision_reads_back_as_it_was_written() -> None:
    target = Target(2, 5, Reason.BOTTLENECK, "{a} x", {"a": 2.0}).guarded(
        "max_increase", 3, Reason.STEP_LIMITED
    )
    decision = Decision(3.0, "dhalion", {"map": target, "sink": keep(1, Reason.FITS)})
    data = json.loads(json.dumps(decision.to_json(with_numbers=True)))
    assert Decision.from_json(data) == decision
    assert data["targets"]["map"]["proposal"] == 5


def test_moves_read_back_as_they_were_written() -> None:
    placement = Placement(2, 3, Reason.MEAN_ABOVE_RANGE, (Move("AP:1", "h1", "new-1"),))
    decision = Decision(30.0, "enforcer", placement=placement)
    data = decision.to_json()
    assert data["moves"] == [{"slice": "AP:1", "from": "h1", "to": "new-1"}]
    assert Decision.from_json(data) == decision
    assert decision.is_change


def test_the_raw_form_has_nothing_but_current_wanted_and_reason() -> None:
    decision = Decision(30.0, "ds2", {"s": Target(5, 4, Reason.RATE_BELOW_CAPACITY, "f")})
    assert decision.to_json()["targets"] == {
        "s": {"current": 5, "wanted": 4, "reason": "rate-below-capacity"}
    }


def test_infinite_numbers_are_written_as_unknown() -> None:
    decision = Decision(0.0, "x", {"s": keep(1, Reason.FITS, "{t}", t=float("inf"))})
    assert decision.to_json(with_numbers=True)["targets"]["s"]["numbers"] == {"t": None}


def test_every_reason_has_a_sentence() -> None:
    assert all(reason.sentence for reason in Reason)
    assert read_reason("fits") is Reason.FITS
    assert read_reason("their-own") == "their-own"


@pytest.mark.parametrize("percent", [1, 50, 95, 99, 100])
def test_percentiles_of_a_histogram_are_within_two_percent(percent: float) -> None:
    values = [0.001 * 1.01**i for i in range(1000)]
    exact = values[max(0, round(percent * 10) - 1)]
    assert Histogram.of(values).percentile(percent) == pytest.approx(exact, rel=0.02)


def test_histograms_merge_to_what_one_would_have_counted() -> None:
    first, second, both = [0.1, 5.0], [0.2, 0.0], Histogram.of([0.1, 5.0, 0.2, 0.0])
    merged = Histogram.of(first)
    merged.merge(Histogram.of(second))
    assert merged == both == Histogram.from_json(json.loads(json.dumps(both.to_json())))
    assert both.share_above(1.0) == 0.25
    assert both.share_above(5.0) == 0.0
    assert Histogram().mean == 0.0
