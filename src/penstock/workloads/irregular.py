"""Loads without a shape: Brownian motion, and bursts like those of DNS traffic."""

import math
from dataclasses import dataclass

from penstock.core.params import Params, param
from penstock.errors import InputError
from penstock.workloads.java_random import JavaRandom
from penstock.workloads.pattern import RATE, Pattern, Request
from penstock.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class BrownianParams(Params):
    """A walk with normal steps between two mirrors."""

    start: float = param(500_000.0, "rate of the first minute", unit=RATE, low=0)
    sigma: float = param(50_000.0, "standard deviation of a minute's change", unit=RATE, low=0)
    drift: float = param(0.0, "mean change a minute", unit=RATE)
    max: float = param(1_000_000.0, "the upper mirror", unit=RATE, low=0, above=True)

    def check(self) -> None:
        """Refuse a start above the upper mirror."""
        if self.start > self.max:
            raise InputError("start", f"must be at most max ({self.max:g}), got {self.start:g}")


def brownian(params: BrownianParams, request: Request) -> Workload:
    """Build Brownian motion with a value a minute, mirrored at 0 and at `max`."""
    random = JavaRandom(request.seed)
    rates = [params.start]
    for _ in range(request.minutes - 1):
        moved = rates[-1] + params.drift + params.sigma * random.next_gaussian()
        rates.append(_mirrored(moved, params.max))
    return Workload.of_steps(rates)


def _mirrored(value: float, top: float) -> float:
    """Fold a number into [0, top] as two facing mirrors would."""
    folded = value % (2 * top)
    return folded if folded <= top else 2 * top - folded


@dataclass(frozen=True, slots=True, kw_only=True)
class DnsParams(Params):
    """Restless traffic with short, heavy-tailed bursts."""

    mean: float = param(1000.0, "mean over the whole time", unit=RATE, low=0)
    jitter: float = param(0.25, "deviation of the logarithm of the quiet rate", low=0, high=2)
    bursts: float = param(0.5, "mean number of bursts a minute", unit="1/min", low=0, high=6)
    tail: float = param(1.8, "Pareto exponent of burst heights; lower is wilder", low=1, above=True)
    fade: float = param(20.0, "time in which a burst fades to 37 %", unit="s", low=1)


#: A new level each 10 s: a burst of a name server's clients is over within a minute.
_DNS_STEP_S = 10.0
#: The quiet rate forgets half of its deviation in about a minute.
_MEMORY = 0.9
#: No burst is higher than this many times the quiet rate.
_HIGHEST_BURST = 20.0


def dns(params: DnsParams, request: Request) -> Workload:
    """Build a wandering quiet rate and bursts that fade, scaled to the requested mean."""
    random = JavaRandom(request.seed)
    fading = math.exp(-_DNS_STEP_S / params.fade)
    chance = params.bursts * _DNS_STEP_S / 60
    wander = params.jitter * random.next_gaussian()
    burst, rates = 0.0, []
    for _ in range(int(request.minutes * 60 / _DNS_STEP_S)):
        fresh = math.sqrt(1 - _MEMORY**2) * params.jitter * random.next_gaussian()
        wander = _MEMORY * wander + fresh
        burst *= fading
        comes, height = random.next_double() < chance, 1 - random.next_double()
        if comes:
            burst += min(height ** (-1 / params.tail), _HIGHEST_BURST)
        rates.append(math.exp(wander) + burst)
    load = Workload.of_steps(rates, _DNS_STEP_S)
    return load * (params.mean / load.mean_rate)


PATTERNS = (
    Pattern(
        name="brownian",
        summary="Brownian motion between 0 and a maximum",
        source="usual in control theory",
        build=brownian,
        params=BrownianParams,
        seeded=True,
    ),
    Pattern(
        name="dns",
        summary="restless traffic with short, heavy-tailed bursts",
        source="predictive replication in Storm, V-G (synthetic, after its description)",
        build=dns,
        params=DnsParams,
        arrivals="bursty",
        seeded=True,
    ),
)
