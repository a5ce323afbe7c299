"""Rates that snapshots show."""

from types import SimpleNamespace
from typing import Any

import pytest

from penstock.engines.microbatch.snapshot_builder import measure_offered_rate


@pytest.mark.parametrize(
    ("offers", "rate"),
    [
        ([(0.0, 10.0)], None),
        ([(0.0, 10.0), (5.0, 60.0)], 10.0),
        # the estimated backlog in front of an ingest has fallen
        ([(0.0, 10.0), (5.0, 6.0)], 0.0),
    ],
)
def test_the_offered_rate_is_never_negative(offers: Any, rate: float | None) -> None:
    operator: Any = SimpleNamespace(offers=offers)
    assert measure_offered_rate(operator, 0.0) == rate
