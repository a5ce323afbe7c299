"""What a run was worth, against figures worked out by hand."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.control.loop import Tick
from penstock.core.decision import Decision, Target
from penstock.core.guards import Guards
from penstock.core.histogram import Histogram
from penstock.core.reasons import Reason
from penstock.core.snapshot import Snapshot
from penstock.engines.port import Status
from penstock.runs.journal import JournalWriter, read_journal
from penstock.runs.scores import Scores, percentile, rescales_possible, score
from penstock.runs.simulated_run import prepare_simulation
from penstock.runs.spec import SimulationSpec


def tick(at: float, k: int, replica_s: float, **status: object) -> Tick:
    told = Status(
        at=at, requested={"map": k}, running={"map": k}, replica_s={"map": replica_s}, **status
    )
    return Tick(at=at, status=told)


def test_percentiles_are_linear() -> None:
    assert percentile([40, 0, 20, 10, 30], 95) == 38
    assert percentile([7.0], 50) == 7


@given(
    values=st.lists(st.floats(0, 1e6), min_size=1, max_size=50),
    percent=st.floats(0, 100),
)
def test_percentiles_are_those_of_numpy(values: list[float], percent: float) -> None:
    assert percentile(values, percent) == pytest.approx(np.percentile(values, percent))


def test_replicas_are_means_over_time_and_the_most_at_any_tick() -> None:
    result = score([tick(10, 2, 20.0), tick(20, 6, 80.0), tick(40, 1, 100.0)]).to_json()
    assert result["replicas"] == {"avg": 2.5, "max": 6}
    assert result["replica_hours"] == pytest.approx(100 / 3600, rel=1e-5)
    assert result["operators"] == {"map": {"replicas": {"avg": 2.5, "max": 6}, "rescales": 0}}


def test_executors_are_scored_where_there_are_any() -> None:
    ticks = [tick(10, 2, 20.0), tick(20, 2, 40.0)]
    assert "executors" not in score(ticks).to_json()
    ticks = [
        tick(10, 2, 20.0, executors=3, executors_requested=3, executor_s=20.0),
        tick(20, 2, 40.0, executors=1, executors_requested=1, executor_s=36.0),
    ]
    assert score(ticks).to_json()["executors"] == {"avg": 1.8, "max": 3}
    assert score(ticks).to_json()["executor_hours"] == 0.01


def test_latency_is_that_of_all_records_on_all_paths() -> None:
    first = {"a > c": Histogram.of([1.0] * 60), "b > c": Histogram.of([3.0] * 20)}
    last = {"a > c": Histogram.of([11.0] * 20)}
    result = score(
        [tick(10, 1, 10.0, latency=first), tick(20, 1, 20.0, latency=last)], 2.0
    ).to_json()
    assert result["latency_s"]["avg"] == 3.4 and result["latency_s"]["max"] == 11
    assert result["latency_s"]["p50"] == pytest.approx(1, rel=0.02)
    assert result["latency_s"]["p99"] == pytest.approx(11, rel=0.02)
    assert result["slo"] == {"objective_s": 2.0, "violated_share": 0.4}


def test_what_no_record_told_is_not_known() -> None:
    result = score([tick(10, 1, 10.0, latency={"a": Histogram()})], 2.0).to_json()
    assert set(result["latency_s"].values()) == {None}
    assert result["slo"] == {"objective_s": 2.0, "violated_share": None}


def test_ages_have_one_sample_a_tick() -> None:
    ages = [0.0, 10.0, None, 20.0, 30.0, 40.0]
    result = score([tick(i + 1, 1, i + 1.0, age_s=age) for i, age in enumerate(ages)]).to_json()
    assert result["age_s"] == {"avg": 20, "p50": 20, "p95": 38, "max": 40}


def test_without_an_objective_none_is_missed() -> None:
    assert score([tick(10, 1, 10.0)]).to_json()["slo"] == {
        "objective_s": None,
        "violated_share": None,
    }


def test_only_changes_that_were_carried_out_count() -> None:
    status = Status(at=10, requested={}, running={}, replica_s={})
    wanted = Decision(10, "p", {"map": Target(1, 2, Reason.FITS), "sink": Target(1, 1, "")})
    ticks = [
        Tick(at=10, status=status, decision=wanted, applied=applied)
        for applied in (True, False, True)
    ]
    assert score(ticks).to_json()["rescales"] == 2


def test_of_each_operator_those_changes_count_that_the_engine_was_asked_for() -> None:
    k = {"map": 1, "sink": 1}
    status = Status(at=10, requested=k, running=k, replica_s={"map": 10.0, "sink": 10.0})
    both = Decision(10, "p", {"map": Target(1, 2, Reason.FITS), "sink": Target(1, 3, "")})
    ticks = [
        Tick(at=10, status=status, decision=both, applied=True, plan={"map": 2, "sink": 3}),
        Tick(at=10, status=status, decision=both, applied=True, plan={"map": 2}),
        Tick(at=10, status=status, plan={"sink": 3}),  # tried again
    ]
    result = score(ticks).to_json()
    assert [result["operators"][name]["rescales"] for name in ("map", "sink")] == [2, 1]


def test_ticks_at_which_a_policy_had_no_answer_are_told() -> None:
    asked = Tick(at=20, status=tick(20, 1, 20.0).status, snapshot=Snapshot(at=20), error="oh")
    assert "unanswered_ticks" not in score([tick(10, 1, 10.0)]).to_json()
    assert score([tick(10, 1, 10.0), asked, asked]).unanswered_ticks == 2


def test_degradation_is_the_mean_of_the_ticks() -> None:
    ticks = [
        tick(10, 1, 10.0, offered_records=100, processed_records=100),
        tick(20, 1, 20.0, offered_records=200, processed_records=150),
        tick(30, 1, 30.0, offered_records=200, processed_records=200),
        tick(40, 1, 40.0, offered_records=300, processed_records=325),
    ]
    assert score(ticks).to_json()["throughput_degradation"] == 0.25


def test_a_run_without_ticks_has_no_figures() -> None:
    assert Scores().result() is None


@pytest.mark.parametrize("policy", ["ds2", "hpa-varga"])
def test_the_journal_gives_the_same_figures_as_the_run(policy: str, tmp_path: Path) -> None:
    prepared = prepare_simulation(SimulationSpec(policy=policy, minutes=40))
    with JournalWriter(tmp_path / "journal.jsonl", prepared.header()) as journal:
        result = prepared.run(journal.write)
    ticks = read_journal(tmp_path / "journal.jsonl").ticks
    again = score(ticks, prepared.objective_s)
    assert again == result.scores
    assert set(result.to_json()) - set(again.to_json()) == {"spec", "rescales_possible"}


@pytest.mark.parametrize(
    ("cooldown_s", "possible"), [(300, 28), (0, 560), (None, 560), (310, 27), (8400, 1)]
)
def test_rescales_possible_is_what_a_loop_that_always_acts_does(
    cooldown_s: float | None, possible: int
) -> None:
    acted, last = 0, -1e9
    for at in range(15, 8401, 15):
        if at - last >= (cooldown_s or 0):
            acted, last = acted + 1, at
    assert acted == possible
    assert rescales_possible(8400, 15, Guards(cooldown_s=cooldown_s)) == possible


def test_replicas_are_counted_even_if_every_tick_meets_a_restart() -> None:
    """What was asked for at one tick ran until the next one, which finds the engine restarting."""
    scores = Scores()
    for at, requested in ((15.0, 5), (30.0, 9), (45.0, 2)):
        status = Status(
            at=at, requested={"a": requested}, running={"a": 0}, replica_s={"a": 3.0 * at}
        )
        scores.add(Tick(at=at, status=status))
    result = scores.result()
    assert result is not None
    assert result.replicas.max == 9
    assert result.operators["a"].replicas.max == 9
