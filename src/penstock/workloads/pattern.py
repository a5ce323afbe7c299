"""What a named workload is: a pure function, with what people must know about it."""

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
    """What is asked of every pattern alike."""

    minutes: int
    seed: int
    spikes: Spikes


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """A named workload. `build(params, request)` is pure; the rest describes it.

    What it builds lasts exactly as long as asked for.
    """

    name: str
    #: One line for `penstock workload --list`.
    summary: str
    #: Where it comes from.
    source: str
    build: Callable[[Any, Request], Workload]
    params: type[Params] = Params
    #: How long it is if nobody says.
    minutes: int = MINUTES
    #: How single records arrive where it was published.
    arrivals: ArrivalName = "deterministic"
    #: Whether the seed changes it.
    seeded: bool = False
    #: Spikes on top of it if nobody says.
    spikes: Spikes = Spikes()
    #: Whether it draws its spikes itself, between its other draws.
    draws_spikes: bool = False
