"""Quick checks of the Pulsar and the predictive experiments, and of what they rest on."""

import tomllib
from pathlib import Path

import pytest

from penstock.engines.simulator.records.model import RecordOperator, RecordPipeline, RecordRules
from penstock.engines.simulator.records.service import ServiceTime
from penstock.engines.simulator.records.simulation import RecordSimulator
from penstock.lab.papers.claims import ClaimAnswer, judge_claim, parse_claim
from penstock.lab.papers.experiments import (
    PaperExperiments,
    check_experiments,
    load_experiments,
    parse_experiments,
    simulate_and_follow,
)
from penstock.lab.papers.run_timeline import correlation

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


@pytest.mark.parametrize(("paper", "least"), [("pulsar", 20), ("predictive", 35)])
def test_every_cell_can_be_prepared_and_there_are_enough_claims(paper: str, least: int) -> None:
    published = load_experiments(paper)
    check_experiments(published)
    assert sum(not claim.undecidable for claim in published.claims) >= least
    assert len({claim.id for claim in published.claims}) == len(published.claims)


@pytest.mark.parametrize("paper", ["pulsar", "predictive"])
def test_every_tested_claim_says_why_it_comes_out_as_it_does(paper: str) -> None:
    silent = [c.id for c in load_experiments(paper).claims if not (c.why or c.undecidable)]
    assert silent == []


def test_the_real_tweets_are_declared_but_not_needed() -> None:
    text = (EXPERIMENTS / "predictive-tweets.toml").read_text("utf-8")
    assert parse_experiments(tomllib.loads(text)).cells.keys() == {"psps", "shuffle", "r4", "dabs"}


def _run(published: PaperExperiments, *cells: str) -> list[dict[str, dict[str, float]]]:
    return [simulate_and_follow(published.cells[cell]) for cell in cells]


def test_no_pulsar_policy_dominates_the_others() -> None:
    threshold, ds2, queueing = _run(load_experiments("pulsar"), "threshold", "ds2", "queueing")
    assert threshold["latency_s"]["avg"] > ds2["latency_s"]["avg"] > queueing["latency_s"]["avg"]
    assert threshold["replicas"]["avg"] < ds2["replicas"]["avg"] < queueing["replicas"]["avg"]


def test_one_replica_each_carries_a_third_of_the_tweets() -> None:
    (one,) = _run(load_experiments("predictive"), "r1")
    assert one["processed_records"] / one["offered_records"] == pytest.approx(1 / 3, abs=0.03)


def _paused(pause_s: float) -> RecordSimulator:
    work = ServiceTime(distribution="deterministic", mean_s=1.0)
    operators = (RecordOperator(name="map", service=work),)
    pipeline = RecordPipeline(operators=operators, rules=RecordRules(pause_s=pause_s))
    simulator = RecordSimulator(pipeline, {"map": [0.0, 2.0, 3.0]}, seed=1)
    simulator.advance(0.5)
    simulator.set_replicas("map", 2)
    return simulator


def test_an_operator_that_pauses_finishes_its_record_begins_none_and_loses_none() -> None:
    simulator = _paused(4.0)
    simulator.advance(4.4)
    assert (simulator.tally().delivered, simulator.totals()["map"].waiting) == (1, 2)
    simulator.advance(5.5)
    assert (simulator.tally().delivered, simulator.tally().dropped) == (3, 0)
    assert simulator.totals()["map"].waited_s == pytest.approx(2.5 + 1.5)


def test_without_a_pause_nothing_waits_for_a_change() -> None:
    simulator = _paused(0.0)
    simulator.advance(5.0)
    assert (simulator.tally().delivered, simulator.totals()["map"].waited_s) == (3, 0.0)


@pytest.mark.parametrize(
    ("band", "answer"),
    [([1.9, 2.1], ClaimAnswer.YES), ([2.1, 9.0], ClaimAnswer.NO), ([0, 1.9], ClaimAnswer.NO)],
)
def test_a_ratio_compares_the_means_of_two_cells(band: list[float], answer: ClaimAnswer) -> None:
    results = {"slow": [{"x": 3.0}, {"x": 5.0}], "quick": [{"x": 1.0}, {"x": 3.0}]}
    ratio = {"cell": "slow", "over": "quick", "band": band}
    claim = parse_claim(
        {"id": "c", "where": "here", "says": "twice", "measure": "x", "ratio": ratio}, results
    )
    assert judge_claim(claim, results).answer is answer


def test_correlation_ignores_scale_and_knows_the_direction() -> None:
    assert correlation([1, 2, 4], [-3, -6, -12]) == pytest.approx(-1.0)
