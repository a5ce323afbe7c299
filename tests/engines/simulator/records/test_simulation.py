"""Records wait, are served, sent on and dropped as the model says."""

from collections.abc import Iterable
from heapq import heapreplace
from itertools import pairwise

import pytest
from tests.engines.simulator.factories import SECOND, one, poisson, simulator

from penstock.engines.simulator.records.model import (
    QUEUES,
    RecordOperator,
    RecordPipeline,
    RecordRules,
)
from penstock.engines.simulator.records.service import ServiceTime
from penstock.engines.simulator.records.simulation import RecordSimulator
from penstock.errors import InputError


@pytest.mark.parametrize("replicas", [1, 3])
def test_every_record_of_a_shared_queue_starts_when_the_first_replica_is_free(
    replicas: int,
) -> None:
    """The recursion of Kiefer and Wolfowitz, on the simulator's own service times."""
    operator = one(service=ServiceTime(distribution="gamma", mean_s=1.0, scv=2), replicas=replicas)
    run, trace = simulator(operator, poisson(0.9 * replicas, 800))
    run.advance(1e6)
    free_s = [0.0] * replicas
    assert len(trace) == 800
    for record in sorted(trace, key=lambda record: record.arrived_s):
        assert record.started_s == max(record.arrived_s, free_s[0])
        heapreplace(free_s, record.finished_s)


@pytest.mark.parametrize("queue", QUEUES)
def test_a_replica_serves_one_record_at_a_time_in_the_order_of_arrival(queue: str) -> None:
    operator = one(service=ServiceTime(mean_s=1.0), replicas=3, queue=queue)
    run, trace = simulator(operator, poisson(2.5, 600))
    run.advance(1e6)
    for replica in range(3):
        served = sorted(r for r in trace if r.replica == replica)
        assert len(served) > 100
        for before, after in pairwise(sorted(served, key=lambda r: r.started_s)):
            assert after.started_s >= before.finished_s
            assert after.arrived_s >= before.arrived_s


def test_a_record_that_finds_no_room_is_dropped_and_counted() -> None:
    run, trace = simulator(one(queue_size=2), [0.0, 0.1, 0.2, 0.3, 0.4])
    run.advance(0.5)
    seen = run.totals()["map"]
    assert (seen.in_service, seen.waiting, seen.dropped["queue-full"]) == (1, 2, 2)
    run.advance(10)
    assert [record.arrived_s for record in trace] == [0.0, 0.1, 0.2]
    assert run.tally().dropped == 2


def test_a_record_that_waited_past_the_time_out_is_dropped_without_service() -> None:
    run, trace = simulator(one(), [0.0, 0.1, 0.2, 0.3], timeout_s=1.85)
    run.advance(10)
    assert [record.started_s for record in trace] == [0.0, 1.0, 2.0]
    assert run.totals()["map"].dropped == {"queue-full": 0, "time-out": 1, "restart": 0}
    assert run.totals()["map"].busy_s == 3.0


def test_the_time_out_counts_from_the_beginning_of_the_pipeline() -> None:
    operators = (one(name="a"), one(name="b", upstream=("a",)), one(name="c", upstream=("b",)))
    pipeline = RecordPipeline(operators=operators, rules=RecordRules(timeout_s=1.5))
    run = RecordSimulator(pipeline, {"a": [0.0]}, seed=1)
    run.advance(10)
    dropped = {name: seen.dropped["time-out"] for name, seen in run.totals().items()}
    assert dropped == {"a": 0, "b": 0, "c": 1}


def test_queue_and_busy_time_are_exact_between_two_events() -> None:
    run, _ = simulator(one(), [0.0, 0.0, 0.0])
    run.advance(1.5)
    seen = run.totals()["map"]
    # two wait for a second, then one for half a second
    assert (seen.queue_s, seen.waited_s, seen.busy_s, seen.replica_s) == (2.5, 1.0, 1.5, 1.5)


def test_the_waiting_of_dropped_records_is_part_of_the_queue_but_not_of_the_waits() -> None:
    run, _ = simulator(one(), [0.0, 0.0], timeout_s=0.5)
    run.advance(4)
    seen = run.totals()["map"]
    assert (seen.queue_s, seen.waited_s, seen.dropped["time-out"]) == (1.0, 0.0, 1)


def fork(shares: dict[str, float], records: int = 4000) -> RecordSimulator:
    free = ServiceTime(mean_s=0)
    ends = tuple(RecordOperator(name=n, upstream=("a",), service=free) for n in shares)
    source = RecordOperator(name="a", service=free, sent=shares)
    run = RecordSimulator(
        RecordPipeline(operators=(source, *ends)), {"a": poisson(1, records)}, seed=5
    )
    run.advance(1e6)
    return run


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0, 2.0, 2.6])
def test_an_edge_sends_its_share_on_average(share: float) -> None:
    run = fork({"b": share})
    assert run.totals()["a"].sent["b"] / 4000 == pytest.approx(share, rel=0.05)
    assert run.totals()["b"].arrived == run.totals()["a"].sent["b"]


def test_shares_of_one_in_total_split_the_records_so_that_each_goes_one_way() -> None:
    run = fork({"b": 0.7, "c": 0.2, "d": 0.1})
    sent = run.totals()["a"].sent
    assert sum(sent.values()) == 4000
    assert run.totals()["a"].filtered == 0
    assert [n / 4000 for n in sent.values()] == pytest.approx([0.7, 0.2, 0.1], abs=0.02)


def test_a_record_that_is_sent_nowhere_is_filtered() -> None:
    run = fork({"b": 0.25})
    tally = run.tally()
    assert tally.filtered == run.totals()["a"].filtered == 4000 - tally.delivered
    assert tally.in_flight == 0


def test_each_path_has_its_own_latency() -> None:
    operators = (
        one(name="a"),
        one(name="slow", upstream=("a",), service=SECOND.but(mean_s=5.0)),
        one(name="fast", upstream=("a",), service=SECOND.but(mean_s=2.0)),
        one(name="end", upstream=("slow", "fast"), replicas=2),
    )
    run = RecordSimulator(RecordPipeline(operators=operators), {"a": [0.0, 20.0]}, seed=1)
    run.advance(100)
    latency = run.take_latency()
    assert {path: (h.count, h.mean) for path, h in latency.items()} == {
        "a > fast > end": (2, 4.0),
        "a > slow > end": (2, 7.0),
    }
    assert latency["a > slow > end"].percentile(99) == pytest.approx(7.0, rel=0.02)
    assert run.tally().delivered == 2
    assert run.take_latency() == {}


def test_a_record_of_which_one_part_is_dropped_counts_as_dropped_once() -> None:
    operators = (
        one(name="a", service=ServiceTime(mean_s=0)),
        one(name="keeps", upstream=("a",)),
        one(name="loses", upstream=("a",), queue_size=0),
    )
    run = RecordSimulator(RecordPipeline(operators=operators), {"a": [0.0, 0.0]}, seed=1)
    run.advance(1.5)
    assert (run.tally().dropped, run.tally().delivered, run.tally().in_flight) == (0, 1, 1)
    run.advance(5)
    assert (run.tally().dropped, run.tally().delivered, run.tally().in_flight) == (1, 1, 0)


def test_arrivals_are_read_no_further_than_needed() -> None:
    read = []

    def times() -> Iterable[float]:
        for n in range(10**9):
            read.append(n)
            yield float(n)

    run, _ = simulator(one(), times())
    run.advance(3)
    assert len(read) == 5  # 0 to 3, and the one after


def test_mistakes_are_named() -> None:
    run, _ = simulator(one(max_replicas=3), [0.0, 2.0, 1.0])
    with pytest.raises(InputError, match=r"map\.replicas: must be from 1 to 3, got 4"):
        run.set_replicas("map", 4)
    with pytest.raises(InputError, match="did you mean 'map'"):
        run.set_replicas("mop", 2)
    with pytest.raises(InputError, match=r"arrivals\.map: must not go back in time: 1\.0 after"):
        run.advance(5)
    with pytest.raises(InputError, match="until_s"):
        run.advance(-1)
    with pytest.raises(InputError, match=r"arrivals\.mapp: is not a source"):
        RecordSimulator(run.pipeline, {"mapp": []}, 1)


@pytest.mark.parametrize(
    ("operator", "said"),
    [
        ({"queue": "shufle"}, "did you mean 'shuffle'"),
        ({"queue_size": -1}, "queue_size: must be at least 0, got -1"),
        ({"replicas": 0}, "replicas: must be at least 1, got 0"),
        ({"sent": {"b": -0.5}}, r"sent\.b: must be at least 0 and finite, got -0\.5"),
    ],
)
def test_an_operator_that_cannot_be_is_refused(operator: dict[str, object], said: str) -> None:
    with pytest.raises(InputError, match=said):
        one(**operator)


def test_a_pipeline_that_does_not_fit_together_is_refused() -> None:
    with pytest.raises(InputError, match="two have the name 'map'"):
        RecordPipeline(operators=(one(), one()))
    with pytest.raises(InputError, match="'sink' is not downstream of 'map'"):
        RecordPipeline(operators=(one(sent={"sink": 1.0}),))
