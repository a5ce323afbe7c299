"""A named workload: a pure function, its parameters and its documentation."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from penstock.core.params import Params
from penstock.workloads.spikes import Spikes
from penstock.workloads.workload import Workload

#: Length of the published runs.
MINUTES = 140
#: Seed of the published runs.
SEED = 1066
#: The unit of every rate.
RATE = "records/s"

ArrivalName = Literal["deterministic", "poisson", "bursty"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """The inputs that every pattern gets."""

    minutes: int
    seed: int
    spikes: Spikes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A named workload. `build(params, request)` is pure; the rest describes it.

    The result lasts exactly as long as requested.
    """

    name: str
    #: One line for `penstock workload --list`.
    summary: str
    #: Where it comes from.
    source: str
    build: Callable[[Any, Request], Workload]
    params: type[Params] = Params
    #: Default length.
    minutes: int = MINUTES
    #: How single records arrive where it was published.
    arrivals: ArrivalName = "deterministic"
    #: Whether the seed changes it.
    seeded: bool = False
    #: Default spikes on top of it.
    spikes: Spikes = Spikes()
    #: Whether it draws its spikes itself, between its other draws.
    draws_spikes: bool = False
