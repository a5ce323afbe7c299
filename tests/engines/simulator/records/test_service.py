"""Service times have the mean and the spread that they were asked for."""

from itertools import islice

import numpy as np
import pytest

from penstock.engines.simulator.records.service import FAMILIES, ServiceTime
from penstock.errors import InputError


@pytest.mark.parametrize(
    ("distribution", "scv"),
    [
        ("deterministic", None),
        ("exponential", None),
        ("lognormal", 0.5),
        ("gamma", 0.3),
        ("gamma", 2.0),
        ("erlang", 1 / 4),
        ("hyperexponential", 1.0),
        ("hyperexponential", 3.0),
        ("uniform", None),
        ("uniform", 0.1),
    ],
)
def test_draws_have_the_mean_and_the_scv_that_were_asked_for(
    distribution: str, scv: float | None
) -> None:
    service = ServiceTime(distribution=distribution, mean_s=0.2, scv=scv)
    drawn = np.array(list(islice(service.draws(np.random.default_rng(5)), 60_000)))
    assert drawn.min() >= 0
    assert drawn.mean() == pytest.approx(0.2, rel=0.02)
    assert drawn.var() / 0.2**2 == pytest.approx(service.spread, rel=0.06, abs=1e-12)


@pytest.mark.parametrize("distribution", FAMILIES)
def test_a_mean_of_zero_is_no_work_at_all(distribution: str) -> None:
    stream = ServiceTime(distribution=distribution, mean_s=0).draws(np.random.default_rng(1))
    assert list(islice(stream, 3)) == [0, 0, 0]


@pytest.mark.parametrize("distribution", ["lognormal", "gamma", "uniform"])
def test_no_spread_is_the_mean_every_time(distribution: str) -> None:
    stream = ServiceTime(distribution=distribution, mean_s=2, scv=0).draws(np.random.default_rng(1))
    assert list(islice(stream, 3)) == [2, 2, 2]


@pytest.mark.parametrize(
    ("distribution", "scv", "said"),
    [
        ("deterministic", 1, "must be 0 for deterministic, got 1"),
        ("hyperexponential", 0.5, "must be from 1 to inf for hyperexponential, got 0.5"),
        ("uniform", 0.5, "must be from 0 to 0.333333 for uniform, got 0.5"),
        ("erlang", 0.4, "must be 1, 1/2, 1/3, ... for erlang, got 0.4"),
        ("erlang", 0, "must be 1, 1/2, 1/3, ... for erlang, got 0"),
        ("normal", 1, "must be one of deterministic, exponential"),
    ],
)
def test_a_spread_that_the_kind_cannot_have_is_refused(
    distribution: str, scv: float, said: str
) -> None:
    with pytest.raises(InputError, match=said):
        ServiceTime(distribution=distribution, scv=scv)
