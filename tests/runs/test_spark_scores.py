"""Figures that only a real engine gives, from ticks that were made up."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import op, snap

from penstock.control.loop import Tick
from penstock.engines.events import (
    Event,
    ExecutorsReadyEvent,
    ExecutorsRequestedEvent,
    RunningEvent,
)
from penstock.engines.port import Status
from penstock.runs.journal import read_ticks
from penstock.runs.record_counts import LastTopic, RecordCounts
from penstock.runs.spark_result import OperatorAccount
from penstock.runs.spark_scores import SparkScores, records

RECORDED = Path(__file__).parents[1] / "recorded"


def tick(at: float, *events: Event, offered: float = 8.0, service_s: float = 0.5) -> Tick:
    first = op("resize", 1, input_rate=offered, service_time_s=0.01, extra={"floor_s": 0.2})
    second = op(
        "recognise",
        4,
        upstream=("resize",),
        input_rate=offered / 2,
        service_time_s=service_s,
        extra={"floor_s": 0.3},
    )
    return Tick(
        at=at,
        status=Status(
            at=at,
            requested={"resize": 1, "recognise": 4},
            running={"resize": 1, "recognise": 4},
            replica_s={"resize": at, "recognise": 4 * at},
            events=events,
        ),
        snapshot=snap(first, second, at=at, offered=offered),
    )


def ran(after_s: float, batches: int) -> Event:
    return RunningEvent(at=1.0, operator="recognise", replicas=3, after_s=after_s, batches=batches)


def result(*ticks: Tick, peak: float | None = None) -> dict[str, Any]:
    outcome = SparkScores(objective_s=5.0)
    for one in ticks:
        outcome.add(one)
    scores = outcome.scores()
    assert scores is not None
    return {**scores.to_json(), **outcome.measures(peak).to_json()}


def test_the_peak_takes_what_the_measured_service_times_say() -> None:
    # half of what is offered gets to recognise: 20 x 0.5 x 0.5 s = 5 replicas at the peak
    got = result(tick(2), tick(4, service_s=0.5), tick(6, service_s=9.0), peak=20.0)
    assert got["static_peak"] == {
        "peak_rate": 20.0,
        "replicas": 6,
        "operators": {"resize": 1, "recognise": 5},
    }


def test_without_a_workload_the_peak_is_the_highest_rate_seen() -> None:
    assert result(tick(2), tick(4, offered=30.0))["static_peak"]["peak_rate"] == 30.0


def test_how_long_changes_took() -> None:
    got = result(tick(2, ran(1.0, 1)), tick(4, ran(3.0, 2), ran(2.0, 5)))
    assert got["change_s"] == {"median": 2.0, "max": 3.0}
    assert got["change_batches"] == {"median": 2, "max": 5}
    assert result(tick(2))["change_s"] == {"median": None, "max": None}


def test_executors_that_were_bought_and_returned() -> None:
    def requested(number: int, before: int) -> Event:
        return ExecutorsRequestedEvent(
            at=0.0, alive=1, requested=number, before=before, reason="more-replicas"
        )

    def ready(number: int, after_s: float) -> Event:
        return ExecutorsReadyEvent(at=0.0, alive=1, requested=number, after_s=after_s)

    figures = result(
        tick(10, requested(3, before=1), ready(3, after_s=4.0)),
        tick(20, requested(2, before=3)),
        tick(30, ready(2, after_s=2.0)),
    )["executor_changes"]
    assert (figures["bought"], figures["returned"]) == (2, 1)
    assert figures["bought_s"]["median"] == 4.0
    assert figures["returned_s"]["median"] == 2.0


def test_the_floor_adds_up_along_a_path() -> None:
    assert result(tick(2))["floor_s"] == pytest.approx(0.5)


def test_scores_are_among_the_figures() -> None:
    got = result(tick(2), tick(4))
    assert got["seconds"] == 4
    assert got["replicas"] == {"avg": 5.0, "max": 5}


NOBODY = OperatorAccount()


@pytest.mark.parametrize(
    ("missing", "dropped", "aside", "drained", "account", "lost"),
    [
        pytest.param(0, 0, 0, True, NOBODY, 0, id="all there"),
        pytest.param(3, 0, 0, True, NOBODY, 3, id="some are lost"),
        pytest.param(3, 2, 0, True, NOBODY, 1, id="of which some were dropped on purpose"),
        pytest.param(3, 0, 3, True, NOBODY, 0, id="or put aside"),
        pytest.param(3, 0, 0, True, OperatorAccount(filtered=3), 0, id="or filtered"),
        pytest.param(4, 0, 0, True, OperatorAccount(filtered=3), 1, id="but not all of them"),
        pytest.param(3, 0, 0, False, NOBODY, 0, id="or are still on their way"),
        pytest.param(3, 0, 0, False, OperatorAccount(lost=2), 2, id="passed over, whoever waits"),
        pytest.param(None, 0, 0, True, NOBODY, 0, id="no numbers to follow"),
        pytest.param(None, 0, 0, True, OperatorAccount(lost=2), 2, id="offsets tell all the same"),
    ],
)
def test_what_is_lost(
    missing: int | None,
    dropped: int,
    aside: int,
    drained: bool,
    account: OperatorAccount,
    lost: int,
) -> None:
    counts = RecordCounts(
        offered=10,
        topics=(LastTopic(topic="b", rows=7),),
        complete=None if missing is None else 10 - missing,
        put_aside=aside,
    )
    got = records(counts, dropped, {"op": account}, is_drained=drained)
    assert got.lost == lost


def test_ids_that_a_function_rewrites_say_nothing_about_lost_records() -> None:
    topic = LastTopic(topic="b", rows=10, missing=5, doubled=0, strange=5)  # 0, 2, .. 18
    counts = RecordCounts(offered=10, topics=(topic,), complete=5)
    account = OperatorAccount(rows_in=10, rows_out=10)
    got = records(counts, 0, {"op": account}, is_drained=True)
    assert (got.lost, got.doubled, got.complete, got.missing) == (0, 0, None, None)
    assert got.strange == 5
    got = records(counts, 0, {"op": OperatorAccount(lost=2)}, is_drained=True)
    assert got.lost == 2  # by the offsets of batches


def test_what_was_added_up_goes_on_from_any_tick() -> None:
    """A journal that forgets its oldest ticks carries this instead of them."""
    ticks = list(read_ticks(RECORDED / "journal-spark-v1.jsonl"))
    whole = SparkScores(0.5)
    for tick in ticks:
        whole.add(tick)
    for cut in (0, 1, len(ticks) // 2, len(ticks)):
        first, second = SparkScores(0.5), SparkScores(0.5)
        for tick in ticks[:cut]:
            first.add(tick)
        second.restore(json.loads(json.dumps(first.to_json())))
        for tick in ticks[cut:]:
            second.add(tick)
        assert (second.scores(), second.measures()) == (whole.scores(), whole.measures())
        assert second.last is not None
        assert second.last.at == ticks[-1].at


@pytest.mark.parametrize(
    ("account", "doubled"),
    [
        pytest.param(NOBODY, 4, id="numbers that are there twice"),
        pytest.param(OperatorAccount(expanded=4), 0, id="a function that returns more rows"),
        pytest.param(OperatorAccount(expanded=4, doubled=1), 1, id="rows that were taken again"),
    ],
)
def test_what_is_doubled(account: OperatorAccount, doubled: int) -> None:
    topic = LastTopic(topic="b", rows=14, missing=0, doubled=4, strange=0)
    counts = RecordCounts(offered=10, topics=(topic,), complete=10)
    assert records(counts, 0, {"op": account}, is_drained=True).doubled == doubled
