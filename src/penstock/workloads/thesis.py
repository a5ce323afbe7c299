"""The evaluation thesis' moving patterns: cosine, random, increase, decrease.

One whole rate a minute, drawn with Java's generator in its workbench's order, so that
each list equals the published one to the integer. Defaults: its runs of query 1.
"""

import math
from dataclasses import dataclass

from penstock.core.params import Params, param
from penstock.errors import InputError
from penstock.workloads.java_random import JavaRandom
from penstock.workloads.pattern import RATE, Pattern, Request
from penstock.workloads.spikes import Spikes, draw_spikes
from penstock.workloads.workload import Workload

THESIS = "evaluation thesis, 5.4.3 and 7.2"


@dataclass(frozen=True, slots=True, kw_only=True)
class CosineParams(Params):
    """A wave that starts at its crest."""

    mean: int = param(1_200_000, "middle of the wave", unit=RATE, low=0)
    div: int = param(1_000_000, "height of the wave above its middle", unit=RATE, low=0)
    noise: int = param(100_000, "largest distance from the wave, either way", unit=RATE, low=0)
    period: float = param(60.0, "time from crest to crest", unit="min", low=0, above=True)


def cosine(params: CosineParams, request: Request) -> Workload:
    """Build mean + div·cos(2π·minute / period), with uniform noise and spikes."""
    random = JavaRandom(request.seed)
    spikes = draw_spikes(request.spikes, params.div, random)
    rates = []
    for minute in range(request.minutes):
        wave = params.mean + params.div * math.cos((2 * math.pi / params.period) * minute)
        # the order of draws and of additions decides the last digit
        noisy = wave + random.next_double() * 2 * params.noise - params.noise
        rates.append(int(max(0.0, noisy + next(spikes))))
    return Workload.of_steps(rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomParams(Params):
    """A walk with uniform steps."""

    start: int = param(1_250_000, "rate of the first minute", unit=RATE, low=0)
    step: int = param(500_000, "largest change a minute, either way", unit=RATE, low=0)
    max: int = param(2_500_000, "rate that is never exceeded", unit=RATE, low=0)

    def check(self) -> None:
        """Refuse a start above the maximum."""
        if self.start > self.max:
            raise InputError("start", f"must be at most max ({self.max}), got {self.start}")


def random_walk(params: RandomParams, request: Request) -> Workload:
    """Build a walk from `start` that stays between 0 and `max`."""
    random = JavaRandom(request.seed)
    rates = [params.start]
    for _ in range(request.minutes - 1):
        moved = int(rates[-1] + random.next_double() * (2 * params.step) - params.step)
        rates.append(min(max(moved, 0), params.max))
    return Workload.of_steps(rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class IncreaseParams(Params):
    """A walk that drifts upward."""

    start: int = param(0, "rate before the first minute", unit=RATE, low=0)
    total: int = param(2_500_000, "scale of the rise; 0.85 of it in 140 min", unit=RATE, low=0)


def increase(params: IncreaseParams, request: Request) -> Workload:
    """Build a walk with steps from -total/30 to +total/22 a minute."""
    return _drift(params.start, params.total // 30, params.total // 22, request)


@dataclass(frozen=True, slots=True, kw_only=True)
class DecreaseParams(Params):
    """A walk that drifts downward."""

    start: int = param(2_500_000, "rate before the first minute, less 2000", unit=RATE, low=0)


def decrease(params: DecreaseParams, request: Request) -> Workload:
    """Build a walk with steps from -start/21 to +start/28 a minute."""
    return _drift(params.start + 2000, params.start // 21, params.start // 28, request)


def _drift(rate: int, down: int, up: int, request: Request) -> Workload:
    random = JavaRandom(request.seed)
    rates = []
    for _ in range(request.minutes):
        rate = max(0, int(rate + random.next_double() * (up + down) - down))
        rates.append(rate)
    return Workload.of_steps(rates)


#: The set-up "cosinus-spikes" that the thesis' authors published and did not run.
_PUBLISHED_SPIKES = Spikes(
    spike_up=0.05, spike_down=0.05, spike_minutes=1, spike_low=500_000, spike_high=2_000_000
)

PATTERNS = (
    Pattern(
        name="cosine",
        summary="a wave with noise, an hour from crest to crest",
        source=THESIS,
        build=cosine,
        params=CosineParams,
        seeded=True,
        draws_spikes=True,
    ),
    Pattern(
        name="random",
        summary="a random walk between 0 and a maximum",
        source=THESIS,
        build=random_walk,
        params=RandomParams,
        seeded=True,
    ),
    Pattern(
        name="increase",
        summary="a random walk that drifts upward",
        source=THESIS,
        build=increase,
        params=IncreaseParams,
        seeded=True,
    ),
    Pattern(
        name="decrease",
        summary="a random walk that drifts downward",
        source=THESIS,
        build=decrease,
        params=DecreaseParams,
        seeded=True,
    ),
    Pattern(
        name="spikes",
        summary="the cosine with sudden minutes of much more or much less",
        source="published with the evaluation thesis, not run there",
        build=cosine,
        params=CosineParams,
        seeded=True,
        spikes=_PUBLISHED_SPIKES,
        draws_spikes=True,
    ),
)
