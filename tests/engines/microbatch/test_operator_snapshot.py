"""What policies see of Spark, checked against runs whose truth is known."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.tools.recording import batch, task

from penstock.core.snapshot import OperatorSnapshot
from penstock.engines.microbatch.batch_record import BatchRecord, TaskRecord
from penstock.engines.microbatch.operator_snapshot import (
    OperatorWindow,
    build_latency,
    build_operator_snapshot,
    compute_age_s,
    compute_arrival_scv,
    compute_service_scv,
)

RECORDED = Path(__file__).parents[2] / "recorded" / "spark-batches.jsonl"


def seen(records: list[BatchRecord], now: float, **changes: object) -> OperatorSnapshot:
    given = {
        "name": "op",
        "upstream": (),
        "max_replicas": 8,
        "requested": 2,
        "running": 2,
        "now": now,
        "begin": 0.0,
        "batch_s": 1.0,
        "records": records,
        "queues": ((now, 0.0),),
    }
    return build_operator_snapshot(OperatorWindow(**{**given, **changes}))  # type: ignore[arg-type]


def saturated(replicas: int = 2, rate: float = 50.0, batches: int = 8) -> list[BatchRecord]:
    """Batches back to back: 1 s of work, 0.2 s around it, 0.1 s until the next one's plan."""
    work = [task(rows=round(rate), busy_s=1.0) for _ in range(replicas)]
    return [batch(n, at=n * 1.3, took_s=1.2, tasks=work) for n in range(batches)]


def test_an_operator_that_cannot_take_more_is_busy_all_the_time() -> None:
    shown = seen(saturated(), now=8 * 1.3)
    assert shown.busy == pytest.approx(1.0, abs=0.02)
    assert shown.input_rate == pytest.approx(2 * 50 / 1.3, rel=0.02)


def test_rows_that_do_not_fill_a_batch_leave_the_operator_no_less_busy() -> None:
    """Two rows of 0.7 s are more than a second already; nothing else fits in beside them."""
    work = [task(rows=2, busy_s=1.4), task(rows=2, busy_s=1.6)]
    records = [batch(n, at=n * 1.9, took_s=1.8, tasks=work) for n in range(8)]
    shown = seen(records, now=8 * 1.9)
    assert shown.busy == pytest.approx(1.0, abs=0.03)
    assert shown.service_time_s == pytest.approx(1.9 / 2, rel=0.03)


@pytest.mark.parametrize("share", [0.2, 0.5, 0.75])
def test_the_rate_at_which_it_would_be_busy_is_what_it_carries(share: float) -> None:
    """At part load batches are shorter; the capacity that follows is that of full ones."""
    work = [task(rows=round(50 * share * 1.3), busy_s=share * 1.3) for _ in range(2)]
    records = [batch(n, at=n * 1.3, took_s=share * 1.3 + 0.2, tasks=work) for n in range(20)]
    shown = seen(records, now=20 * 1.3)
    assert shown.true_rate == pytest.approx(50 / 1.3, rel=0.15)
    assert shown.true_rate == pytest.approx(shown.replica_capacity, rel=0.01)


def test_an_idle_operator_is_known_to_be_idle() -> None:
    shown = seen(saturated(batches=2), now=100.0, begin=50.0)
    assert (shown.input_rate, shown.busy, shown.idle) == (0.0, 0.0, 1.0)


def test_before_the_first_batch_nothing_is_known() -> None:
    shown = seen([], now=3.0, queues=())
    assert shown.input_rate is shown.busy is shown.queue is shown.service_time_s is None


def test_batches_before_a_change_do_not_count() -> None:
    """Their speed was that of another number of replicas."""
    work = [task(50, 1.0)] * 4
    late = [batch(8 + n, at=10.4 + n * 1.3, took_s=1.2, tasks=work) for n in range(3)]
    shown = seen([*saturated(), *late], now=14.3, running=4, requested=4)
    assert shown.input_rate == pytest.approx(4 * 50 / 1.3, rel=0.02)


def test_back_pressure_is_a_share_of_the_window() -> None:
    shown = seen(saturated(batches=2), now=10.0, held_s=4.0)
    assert shown.backpressured == 0.4
    assert seen(saturated(), now=10.4).backpressured is None


def test_a_queue_with_an_end_says_how_full_it_is() -> None:
    waiting = [(10.0, 30.0), (10.3, 60.0)]
    assert seen(saturated(), now=10.4, queues=waiting, queue_limit=80).input_buffer == 0.75
    assert seen(saturated(), now=10.4, queues=waiting, queue_limit=50).input_buffer == 1.0
    assert seen(saturated(), now=10.4, queues=waiting).input_buffer is None


def test_cpu_that_nobody_told_is_unknown() -> None:
    records = [batch(0, tasks=[task(), task(cpu_s=None)])]
    assert seen(records, now=1.0).cpu is None


def test_the_variation_of_single_records_shows_through_chunks() -> None:
    """Against service times that are drawn: exponential ones have a variation of 1."""
    random = np.random.default_rng(7)
    sizes = random.integers(1, 9, 4000)
    times = np.array([random.exponential(0.02, n).sum() for n in sizes])
    tasks = [
        TaskRecord(
            rows_in=int(sizes.sum()),
            rows_out=0,
            busy_s=float(times.sum()),
            cpu_s=0.0,
            began=0.0,
            ended=0.0,
            chunks=len(sizes),
            squares=float((times**2 / sizes).sum()),
        )
    ]
    assert compute_service_scv(tasks) == pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize(("kind", "expected"), [("poisson", 1.0), ("even", 0.0)])
def test_the_variation_of_arrivals_shows_in_counts(kind: str, expected: float) -> None:
    random = np.random.default_rng(3)
    gaps = random.exponential(0.01, 60_000) if kind == "poisson" else np.full(60_000, 0.01)
    times, counts = np.unique(np.floor(np.cumsum(gaps) / 0.01), return_counts=True)
    events = list(zip(((times + 0.5) * 0.01).tolist(), counts.tolist(), strict=True))
    assert compute_arrival_scv([events]) == pytest.approx(expected, abs=0.15)


def test_the_growth_of_a_queue_keeps_its_sign_and_needs_three_samples() -> None:
    queues = [(float(t), 100.0 - 3 * t) for t in range(9)]
    assert seen(saturated(), now=10.4, queues=queues).queue_growth == pytest.approx(-3)
    assert seen(saturated(), now=10.4, queues=queues[:2]).queue_growth is None


def test_latency_runs_from_due_to_committed() -> None:
    record = batch(0, at=10.0, took_s=1.0, tasks=[task(rows=4)], events=[(8.0, 3), (10.5, 1)])
    found = build_latency([record])
    assert (found.count, found.max) == (4, 3.0)
    assert found.mean == pytest.approx((3 * 3.0 + 0.5) / 4)
    assert compute_age_s([record]) == pytest.approx((3 * 2.0 - 0.5) / 4)


def test_a_recorded_run_says_what_its_operator_was() -> None:
    """Recorded on Spark: 5 replicas that wait 20 ms a record, never idle."""
    lines = RECORDED.read_text().splitlines()
    records = [BatchRecord.from_json(json.loads(line)) for line in lines]
    last = records[-1].committed_at
    shown = seen(records, now=last, begin=records[0].planned_at - 1, running=5, requested=5)
    rows = sum(record.rows_in for record in records[1:])
    truth = rows / (last - records[0].committed_at)
    assert shown.input_rate == pytest.approx(truth, rel=0.1)
    assert shown.busy == pytest.approx(1.0, abs=0.07)
    assert shown.replica_capacity == pytest.approx(truth / 5, rel=0.1)
    assert 1 / 0.02 > shown.replica_capacity > 0.6 / 0.02


def with_slices(busy_s: tuple[float, ...], took_s: float) -> list[BatchRecord]:
    """Batches of one slice on each replica, back to back."""
    work = [replace(task(rows=10, busy_s=s), slices=(n,), loads=(s,)) for n, s in enumerate(busy_s)]
    return [batch(n, at=n * (took_s + 0.1), took_s=took_s, tasks=work) for n in range(8)]


def test_slices_are_no_heavier_if_they_are_placed_unevenly() -> None:
    """A host that every batch waits for is full; what others wait for it is not their load."""
    even = seen(with_slices((1.0, 1.0), 1.2), now=8 * 1.3)
    uneven = seen(with_slices((1.0, 0.1), 1.2), now=8 * 1.3)
    assert even.extra["overhead"] == pytest.approx(1.3, abs=0.01)
    assert uneven.extra["overhead"] == even.extra["overhead"]
    assert uneven.busy == pytest.approx(1.0, abs=0.02)  # as an operator it takes no more


def test_batches_that_wait_for_a_replica_at_random_make_all_slices_heavier() -> None:
    first, second = with_slices((1.0, 0.2), 1.2), with_slices((0.2, 1.0), 1.2)
    records = [(first, second)[n % 2][n] for n in range(8)]
    shown = seen(records, now=8 * 1.3)
    # 1.3 s for 0.6 s of work: the operator takes no more, whatever is moved
    assert shown.extra["overhead"] == pytest.approx(1.3 / 0.6, abs=0.02)
