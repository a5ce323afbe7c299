"""Loads that stand still and then jump: convergence, test runs, steps, constant."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from penstock.core.params import Params, param
from penstock.errors import InputError
from penstock.workloads.java_random import JavaRandom
from penstock.workloads.pattern import RATE, Pattern, Request
from penstock.workloads.spikes import draw_spikes
from penstock.workloads.thesis import THESIS
from penstock.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvergenceParams(Params):
    """Nothing, one level, another level; then nothing again."""

    first: int = param(2_000_000, "first level", unit=RATE, low=0)
    second: int = param(1_000_000, "second level", unit=RATE, low=0)
    noise: int = param(0, "largest distance from a level, either way", unit=RATE, low=0)
    lead: int = param(10, "minutes without load before the first level", unit="min", low=0)
    hold: int = param(40, "how long each level lasts", unit="min", low=1)


def convergence(params: ConvergenceParams, request: Request) -> Workload:
    """Build levels that last exactly as long as requested (the workbench was a minute off)."""
    random = JavaRandom(request.seed)
    spikes = draw_spikes(request.spikes, max(params.first, params.second), random)
    levels = [params.first, params.second]
    rates = []
    for minute in range(request.minutes):
        number = (minute - params.lead) // params.hold
        level = levels[number] if minute >= params.lead and number < len(levels) else 0
        noisy = level + random.next_double() * 2 * params.noise - params.noise
        rates.append(int(max(0.0, noisy + next(spikes))))
    return Workload.of_steps(rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreeLevels(Params):
    """Up to three levels; a negative one is left out."""

    first: int = param(100_000, "first level; negative: left out", unit=RATE)
    second: int = param(200_000, "second level; negative: left out", unit=RATE)
    third: int = param(120_000, "third level; negative: left out", unit=RATE)

    def check(self) -> None:
        """Refuse a run without any level."""
        if max(self.first, self.second, self.third) < 0:
            raise InputError("first", "one level must be at least 0, all three are negative")


@dataclass(frozen=True, slots=True, kw_only=True)
class LowThenHigh(ThreeLevels):
    """A low level, then a high one."""

    third: int = param(-1, "third level; negative: left out", unit=RATE)


@dataclass(frozen=True, slots=True, kw_only=True)
class HighThenLow(ThreeLevels):
    """A high level, then a low one."""

    first: int = param(200_000, "first level; negative: left out", unit=RATE)
    second: int = param(100_000, "second level; negative: left out", unit=RATE)
    third: int = param(-1, "third level; negative: left out", unit=RATE)


def three_levels(params: ThreeLevels, request: Request) -> Workload:
    """Build levels of equal length; the last one also takes the minutes left over."""
    levels = [level for level in (params.first, params.second, params.third) if level >= 0]
    each = request.minutes // len(levels)
    rates = [level for level in levels for _ in range(each)]
    return Workload.of_steps(rates + levels[-1:] * (request.minutes - len(rates)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StepsParams(Params):
    """Levels of equal length, over and over."""

    rates: str = param("2/4/8/3/10/5/1", "the levels, one after the other", unit=RATE)
    interval: float = param(10.0, "how long each level lasts", unit="min", low=0.01)

    def check(self) -> None:
        """Refuse levels that are no numbers."""
        self.levels()

    def levels(self) -> Sequence[float]:
        """Return the levels as numbers; slashes, commas or spaces stand between them."""
        words = self.rates.replace("/", " ").replace(",", " ").split()
        try:
            levels = [float(word) for word in words]
        except ValueError:
            levels = []
        if not levels or not all(0 <= level < float("inf") for level in levels):
            hint = "write numbers of at least 0, such as 20/60/40"
            raise InputError("rates", f"must be a list of rates, got {self.rates!r}", hint)
        return levels


def steps(params: StepsParams, request: Request) -> Workload:
    """Build the levels, from the first one again after the last, for the requested time."""
    levels = params.levels()
    needed = math.ceil(request.minutes / params.interval)
    repeated = [levels[index % len(levels)] for index in range(needed)]
    return Workload.of_steps(repeated, params.interval * 60).between(0, request.minutes * 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConstantParams(Params):
    """One level."""

    rate: float = param(100_000.0, "the level", unit=RATE, low=0)


def constant(params: ConstantParams, request: Request) -> Workload:
    """Build one level for the whole time."""
    return Workload.of_steps([params.rate], request.minutes * 60)


_WORKBENCH = "workbench of the evaluation thesis"
_PULSAR = "elastic Pulsar functions, 5.1 (the rates are ours: its figure 4 has none)"

PATTERNS = (
    Pattern(
        name="convergence",
        summary="10 minutes nothing, 40 minutes high, 40 minutes half of it",
        source=THESIS,
        build=convergence,
        params=ConvergenceParams,
        minutes=90,
        seeded=True,
        draws_spikes=True,
    ),
    Pattern(
        name="testrun",
        summary="three levels of equal length",
        source=_WORKBENCH,
        build=three_levels,
        params=ThreeLevels,
    ),
    Pattern(
        name="testrun-scaleup",
        summary="a low level, then a high one",
        source=_WORKBENCH,
        build=three_levels,
        params=LowThenHigh,
        minutes=10,
    ),
    Pattern(
        name="testrun-scaledown",
        summary="a high level, then a low one",
        source=_WORKBENCH,
        build=three_levels,
        params=HighThenLow,
        minutes=10,
    ),
    Pattern(
        name="constant",
        summary="one level",
        source="textbook",
        build=constant,
        params=ConstantParams,
    ),
    Pattern(
        name="steps",
        summary="a new level every 10 minutes, evenly spaced records",
        source=_PULSAR,
        build=steps,
        params=StepsParams,
    ),
    Pattern(
        name="pulsar",
        summary="a new level every 10 minutes, Poisson arrivals",
        source=_PULSAR,
        build=steps,
        params=StepsParams,
        arrivals="poisson",
    ),
)
