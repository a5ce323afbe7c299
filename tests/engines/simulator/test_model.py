"""Simulated pipelines at the limits of numbers: computed with, or refused."""

from typing import Any

import pytest

from penstock.core.snapshot_json import MAX_REPLICAS
from penstock.engines.simulator.fluid.step import Load, Network, step
from penstock.engines.simulator.model import MAX_RATE, SimulatedOperator, SimulatedPipeline
from penstock.errors import InputError


def make_pipeline(rate: float, share: float) -> SimulatedPipeline:
    """Two operators; the first sends the second so many records for each of its own."""
    first = SimulatedOperator(name="first", capacity_rate=rate, sent={"second": share})
    second = SimulatedOperator(name="second", upstream=("first",), capacity_rate=rate)
    return SimulatedPipeline(name="two", operators=(first, second))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("capacity_rate", 5e-324),
        ("capacity_rate", 1e300),
        ("capacity_rate", 0.0),
        ("replicas", 10**16),
        ("sent", {"second": 1e300}),
        ("sent", {"second": float("nan")}),
        ("sent", {"second": "all"}),
    ],
)
def test_numbers_that_overflow_or_vanish_are_refused(field: str, value: Any) -> None:
    """A replica that takes 5e-324 records/s takes none in a second: a division by zero."""
    given = {"name": "first", "capacity_rate": 1.0, field: value}
    with pytest.raises(InputError, match=f"first.{field}"):
        SimulatedOperator(**given)


@pytest.mark.parametrize("rate", [1 / MAX_RATE, 1.0, MAX_RATE])
@pytest.mark.parametrize("share", [0.0, 5e-324, 1.0, MAX_RATE])
@pytest.mark.parametrize("replicas", [1, MAX_REPLICAS])
def test_what_is_allowed_is_computed(rate: float, share: float, replicas: int) -> None:
    network = Network.of(make_pipeline(rate, share), buffer_s=1.0)
    flows = network.start()
    for speed in (1.0, 0.0, 0.5):
        loads = [Load(1000, replicas, speed), Load(0, replicas, speed)]
        flows = step(network, flows, loads, 1.0)
    first = flows[0]
    assert first.arrived == 3000 == first.processed + first.queue
