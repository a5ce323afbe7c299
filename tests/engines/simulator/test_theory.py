"""The record-level simulator agrees with queueing theory within 3 %.

A mean waiting time is a noisy measure. Each case has as many records as it takes for 3 % to
be at least twice the standard deviation over seeds; the seed was not chosen by its outcome.
"""

import numpy as np
import pytest
from tests.theory import erlang_b, mg1_wait_s, mmk_wait_s

from penstock.engines.simulator.records.model import RecordOperator, RecordPipeline
from penstock.engines.simulator.records.service import ServiceTime
from penstock.engines.simulator.records.simulation import RecordSimulator

# a million records under a line tracer would take most of a minute
pytestmark = [pytest.mark.no_cover, pytest.mark.slow]

WITHIN = 0.03
SEED = 1


def simulate(operators: tuple[RecordOperator, ...], rate: float, records: int) -> RecordSimulator:
    """Poisson arrivals at the first operator: given their number, they are uniform in time."""
    times = np.sort(np.random.default_rng(SEED).uniform(0, records / rate, records))
    pipeline = RecordPipeline(operators=operators)
    simulator = RecordSimulator(pipeline, {operators[0].name: times}, seed=SEED)
    simulator.advance(records / rate)
    return simulator


@pytest.mark.parametrize(
    ("service", "replicas", "rate", "wait_s", "records"),
    [
        pytest.param(ServiceTime(mean_s=1.0), 1, 0.5, mmk_wait_s(0.5, 1, 1), 190_000, id="M/M/1"),
        pytest.param(ServiceTime(mean_s=1.0), 2, 1.2, mmk_wait_s(1.2, 1, 2), 350_000, id="M/M/2"),
        pytest.param(
            ServiceTime(distribution="deterministic", mean_s=1.0),
            1,
            0.6,
            mg1_wait_s(0.6, 1, scv=0),
            70_000,
            id="M/D/1",
        ),
        pytest.param(
            ServiceTime(distribution="lognormal", mean_s=1.0, scv=0.5),
            1,
            0.5,
            mg1_wait_s(0.5, 1, scv=0.5),
            80_000,
            id="M/G/1",
        ),
    ],
)
def test_one_operator_waits_as_theory_says(
    service: ServiceTime, replicas: int, rate: float, wait_s: float, records: int
) -> None:
    operator = RecordOperator(name="only", service=service, replicas=replicas)
    simulator = simulate((operator,), rate, records)
    seen = simulator.totals()["only"]
    assert seen.waited_s / seen.started == pytest.approx(wait_s, rel=WITHIN)
    assert simulator.take_latency()["only"].mean == pytest.approx(wait_s + 1, rel=WITHIN)
    assert seen.busy_s / seen.replica_s == pytest.approx(rate / replicas, rel=WITHIN)
    # Little's law: records in the queue = rate x waiting time
    assert seen.queue_s / simulator.now_s == pytest.approx(rate * wait_s, rel=WITHIN)


def test_a_tandem_responds_as_two_independent_queues() -> None:
    """What leaves an M/M/1 queue is Poisson again (Burke), so the second one is M/M/1 too."""
    first = RecordOperator(name="first", service=ServiceTime(mean_s=1.0))
    second = RecordOperator(name="second", upstream=("first",), service=ServiceTime(mean_s=0.8))
    simulator = simulate((first, second), rate=0.5, records=50_000)
    response_s = {"first": mmk_wait_s(0.5, 1.0, 1) + 1, "second": mmk_wait_s(0.5, 0.8, 1) + 0.8}
    for name, seen in simulator.totals().items():
        measured_s = seen.waited_s / seen.started + seen.service_s / seen.completed
        assert measured_s == pytest.approx(response_s[name], rel=WITHIN)
    mean_s = simulator.take_latency()["first > second"].mean
    assert mean_s == pytest.approx(sum(response_s.values()), rel=WITHIN)


def test_without_a_queue_the_share_that_is_dropped_is_erlangs() -> None:
    """M/G/k/k: the share lost depends on the mean service time only."""
    service = ServiceTime(distribution="uniform", mean_s=1.0)
    operator = RecordOperator(name="only", service=service, replicas=3, queue_size=0)
    seen = simulate((operator,), rate=2.0, records=40_000).totals()["only"]
    assert seen.dropped["queue-full"] / seen.arrived == pytest.approx(erlang_b(2, 3), rel=WITHIN)
