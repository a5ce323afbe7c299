"""Groupings deal records to replicas that come and go: a pool loses nothing, a restart does."""

from itertools import pairwise

import numpy as np
import pytest
from tests.engines.simulator.factories import SECOND, one, poisson, simulator

from penstock.engines.events import RestartEvent, RunningEvent
from penstock.engines.simulator.records.model import (
    QUEUES,
)
from penstock.engines.simulator.records.service import ServiceTime
from penstock.errors import RescaleError


def mean_latency_s(queue: str, **operator: object) -> float:
    """One replica falls behind for 20 s; then the pool gives three more."""
    service = ServiceTime(mean_s=0.1)
    run, _ = simulator(one(queue=queue, service=service, **operator), poisson(20, 4000))
    run.advance(20)
    run.set_replicas("map", 4)
    run.advance(1e6)
    return run.take_latency()["map"].mean


def test_load_balancing_spares_the_replica_with_the_long_queue() -> None:
    balanced, shuffled = mean_latency_s("load-balancing"), mean_latency_s("shuffle")
    assert mean_latency_s("shared") < balanced < 0.7 * shuffled


def test_load_balancing_deals_evenly_and_counts_anew_each_interval() -> None:
    operator = one(queue="load-balancing", replicas=4, service=SECOND.but(mean_s=0.1))
    run, trace = simulator(operator, [0.05 * n for n in range(2000)], interval_s=30)
    run.advance(1e6)
    assert [sum(r.replica == n for r in trace) for n in range(4)] == pytest.approx([500] * 4, abs=4)
    # a quarter of 20 records/s x 0.1 s is half of each replica, so nothing has to wait
    assert max(record.waited_s for record in trace) == pytest.approx(0, abs=1e-9)


def test_the_fields_grouping_keeps_a_key_on_one_replica() -> None:
    operator = one(queue="fields", replicas=4, service=ServiceTime(mean_s=0))
    run, trace = simulator(operator, poisson(1, 500), keys=1)
    run.advance(1e6)
    assert len({record.replica for record in trace}) == 1


def test_skewed_keys_burden_one_replica() -> None:
    def heaviest(skew: float) -> float:
        operator = one(queue="fields", replicas=4, service=ServiceTime(mean_s=0))
        run, trace = simulator(operator, poisson(1, 2000), key_skew=skew)
        run.advance(1e6)
        return max(np.bincount([r.replica for r in trace])) / 2000

    assert heaviest(0.0) < 0.32 < heaviest(2.0)


@pytest.mark.parametrize("queue", QUEUES)
def test_a_pool_loses_nothing_however_often_it_changes(queue: str) -> None:
    run, trace = simulator(one(queue=queue, replicas=4), poisson(2, 400))
    for step, wanted in enumerate([1, 6, 2, 5, 1, 3]):
        run.advance(20.0 * (step + 1))
        run.set_replicas("map", wanted)
        assert run.totals()["map"].running == wanted
    run.advance(1e6)
    assert len(trace) == run.tally().delivered == 400
    assert run.totals()["map"].all_dropped == 0


@pytest.mark.parametrize("queue", QUEUES)
def test_a_replica_that_is_let_go_finishes_its_record_and_takes_no_more(queue: str) -> None:
    run, trace = simulator(one(queue=queue, replicas=2), [0.0, 0.01, 0.02, 0.03, 0.04, 0.05])
    run.advance(0.5)
    run.set_replicas("map", 1)
    run.advance(100)
    assert len(trace) == 6
    assert [r.started_s < 0.5 for r in trace if r.replica == 1].count(False) == 0


@pytest.mark.parametrize("queue", QUEUES)
def test_a_replica_that_is_asked_back_while_it_finishes_still_serves_one_at_a_time(
    queue: str,
) -> None:
    run, trace = simulator(one(queue=queue, replicas=2), np.linspace(0, 5, 50))
    run.advance(0.5)
    run.set_replicas("map", 1)
    run.advance(0.7)
    run.set_replicas("map", 2)
    run.advance(100)
    assert len(trace) == 50
    served = sorted(r.started_s for r in trace if r.replica == 1)
    assert all(after - before >= 1 - 1e-9 for before, after in pairwise(served))


def test_an_idle_replica_that_is_let_go_gets_no_more_records() -> None:
    run, trace = simulator(one(replicas=3), [1.0, 1.1, 1.2])
    run.set_replicas("map", 1)
    run.advance(10)
    assert [(r.replica, r.started_s) for r in trace] == [(0, 1.0), (0, 2.0), (0, 3.0)]


def test_what_waited_for_replicas_that_are_let_go_is_dealt_out_oldest_first() -> None:
    run, trace = simulator(one(queue="load-balancing", replicas=3), [0.01 * n for n in range(9)])
    run.advance(0.5)
    run.set_replicas("map", 1)
    run.advance(100)
    dealt = [r.arrived_s for r in trace if r.replica == 0]
    # its own three, then what the others leave
    assert dealt == [0.0, 0.03, 0.06, 0.04, 0.05, 0.07, 0.08]


def test_a_new_replica_comes_after_its_start_up() -> None:
    run, trace = simulator(one(), [0.0] * 9, startup_s=2.5)
    run.advance(0.5)
    run.set_replicas("map", 3)
    run.advance(2.9)
    assert (run.totals()["map"].running, run.totals()["map"].requested) == (1, 3)
    run.advance(3.0)
    assert run.totals()["map"].running == 3
    run.advance(100)
    assert min(r.started_s for r in trace if r.replica > 0) == 3.0
    assert run.take_changes() == [RunningEvent(at=3.0, operator="map", replicas=3)]


def test_replicas_that_are_no_longer_wanted_do_not_come() -> None:
    run, _ = simulator(one(), [], startup_s=10)
    run.set_replicas("map", 5)
    run.advance(4)
    run.set_replicas("map", 1)
    run.advance(5)
    run.set_replicas("map", 2)
    run.advance(14.9)
    assert run.totals()["map"].running == 1
    run.advance(100)
    assert run.totals()["map"].running == 2


def test_fewer_than_run_now_also_cancels_those_that_are_starting() -> None:
    run, _ = simulator(one(replicas=3), [], startup_s=10)
    run.set_replicas("map", 5)
    run.advance(1)
    run.set_replicas("map", 2)
    run.advance(100)
    assert run.totals()["map"].running == 2


def test_a_restart_leaves_an_empty_queue_with_all_its_room() -> None:
    run, _ = simulator(one(queue_size=2), [0.0] * 3 + [1.0] * 3, restart_s=5)
    run.advance(0.5)
    run.set_replicas("map", 2)
    run.advance(2)
    seen = run.totals()["map"]
    assert (seen.waiting, seen.dropped) == (2, {"queue-full": 1, "time-out": 0, "restart": 3})
    # two waited for half a second before the restart, two for one second since
    assert seen.queue_s == 2 * 0.5 + 2 * 1.0


def test_a_restart_drops_what_waits_and_stops_everything_for_a_while() -> None:
    run, trace = simulator(one(), [0.0, 0.1, 0.2, 3.0], restart_s=5)
    run.advance(0.5)
    run.set_replicas("map", 2)
    assert run.totals()["map"].dropped["restart"] == run.tally().dropped == 3
    assert run.totals()["map"].busy_s == 0.5
    with pytest.raises(RescaleError, match=r"restarts until 5\.5 s"):
        run.set_replicas("map", 3)
    run.advance(5.4)
    assert (run.totals()["map"].running, run.totals()["map"].waiting) == (0, 1)
    run.advance(10)
    assert [(r.arrived_s, r.started_s) for r in trace] == [(3.0, 5.5)]
    assert run.totals()["map"].replica_s == 0.5 + 2 * 4.5
    changes = [(change.at, type(change)) for change in run.take_changes()]
    assert changes == [(0.5, RestartEvent), (5.5, RunningEvent)]


def test_asking_for_what_already_runs_changes_nothing() -> None:
    run, trace = simulator(one(replicas=2), [0.0, 0.1, 0.2], restart_s=5)
    run.advance(0.5)
    run.set_replicas("map", 2)
    run.advance(10)
    assert len(trace) == 3
