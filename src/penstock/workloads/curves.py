"""Loads with a smooth shape: ramp, trapezoid, sinus with a weekly rhythm, a market day."""

from dataclasses import dataclass

import numpy as np

from penstock.core.params import Params, param
from penstock.errors import InputError
from penstock.workloads.java_random import JavaRandom
from penstock.workloads.pattern import RATE, Pattern, Request
from penstock.workloads.piecewise import Pieces
from penstock.workloads.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class RampParams(Params):
    """A straight line."""

    start: float = param(0.0, "rate at the beginning", unit=RATE, low=0)
    end: float = param(1_000_000.0, "rate at the end", unit=RATE, low=0)


def ramp(params: RampParams, request: Request) -> Workload:
    """Build a straight line over the whole time."""
    return Workload.of_points([0, request.minutes * 60], [params.start, params.end])


@dataclass(frozen=True, slots=True, kw_only=True)
class TrapezoidParams(Params):
    """Up, level, down."""

    peak: float = param(350.0, "rate of the level part", unit=RATE, low=0)
    rise: float = param(0.4, "share of the time that the way up takes", low=0, high=1)
    fall: float = param(0.4, "share of the time that the way down takes", low=0, high=1)

    def check(self) -> None:
        """Refuse ways up and down that overlap."""
        if self.rise + self.fall > 1 + 1e-9:
            raise InputError(
                "rise", f"rise + fall must be at most 1, got {self.rise + self.fall:g}"
            )


def trapezoid(params: TrapezoidParams, request: Request) -> Workload:
    """Build a way up from nothing, a level part, and a way down to nothing."""
    duration_s = request.minutes * 60
    times = [0.0, params.rise * duration_s, (1 - params.fall) * duration_s, duration_s]
    return Workload.of_points(times, [0.0, params.peak, params.peak, 0.0])


@dataclass(frozen=True, slots=True, kw_only=True)
class SinusParams(Params):
    """Day and night, working days and weekends."""

    mean: float = param(100_000.0, "mean of a working day", unit=RATE, low=0)
    swing: float = param(0.8, "height of the wave as a share of the mean", low=0, high=1)
    weekend: float = param(0.5, "load of Saturday and Sunday as a share of other days", low=0)
    day: float = param(20.0, "how long a day takes; 1440 is real time", unit="min", low=1)


#: Straight pieces a day; they stay within 0.001 % of the sinus.
_DAY_PIECES = 720


def sinus(params: SinusParams, request: Request) -> Workload:
    """Build days from Monday, midnight on: fewest records at midnight, most at noon."""
    pieces = int(np.ceil(request.minutes / params.day * _DAY_PIECES))
    edges = np.arange(pieces + 1, dtype=np.float64) * (params.day * 60 / _DAY_PIECES)
    angle = 2 * np.pi / _DAY_PIECES * np.arange(pieces + 1)
    wave = params.mean * (1 - params.swing * np.cos(angle))
    weekday = np.arange(pieces) // _DAY_PIECES % 7
    share = np.where(weekday < 5, 1.0, params.weekend)
    whole = Workload.of_pieces(Pieces(edges, wave[:-1] * share, wave[1:] * share))
    return whole.between(0, request.minutes * 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class MarketParams(Params):
    """A trading day at a stock exchange."""

    peak: float = param(190.0, "rate of the afternoon's spike, before noise", unit=RATE, low=0)
    noise: float = param(0.1, "largest distance from the shape, as a share", low=0, high=1)


#: Hour of the day and share of the peak. Trading is from 9:00 to 17:30; the spike comes with
#: the opening in New York. 800 minutes in all: 40 at the published speed of 3 minutes an hour.
_DAY = (
    (5.50, 0.01), (7.50, 0.02), (8.90, 0.06), (9.00, 0.10), (9.10, 0.62), (9.30, 0.55),
    (10.0, 0.45), (11.0, 0.38), (12.0, 0.32), (13.0, 0.28), (14.0, 0.36), (14.5, 0.50),
    (15.2, 0.52), (15.4, 0.60), (15.5, 1.00), (15.7, 0.85), (16.2, 0.68), (17.0, 0.60),
    (17.4, 0.62), (17.5, 0.66), (17.7, 0.34), (18.0, 0.30), (18.0 + 5 / 6, 0.24),
)  # fmt: skip
_MARKET_STEP_S = 10


def market(params: MarketParams, request: Request) -> Workload:
    """Build the day from 5:30 to 18:50, stretched or pressed into the requested time."""
    random = JavaRandom(request.seed)
    times = np.arange(request.minutes * 60 // _MARKET_STEP_S + 1) * _MARKET_STEP_S
    hours, shares = zip(*_DAY, strict=True)
    clock = hours[0] + (hours[-1] - hours[0]) * times / times[-1]
    noise = [1 + params.noise * (2 * random.next_double() - 1) for _ in times]
    rates = params.peak * np.interp(clock, hours, shares) * np.array(noise)
    return Workload.of_points(times.tolist(), rates.tolist())


_STREAMHUB = "E-StreamHub, VI.E"

PATTERNS = (
    Pattern(
        name="ramp",
        summary="a straight line from one rate to another",
        source="textbook",
        build=ramp,
        params=RampParams,
    ),
    Pattern(
        name="trapezoid",
        summary="gradually up, level, gradually down",
        source=f"{_STREAMHUB}, figure 8",
        build=trapezoid,
        params=TrapezoidParams,
    ),
    Pattern(
        name="sinus",
        summary="day and night with quieter weekends, by default a week in 140 minutes",
        source="usual in capacity planning",
        build=sinus,
        params=SinusParams,
    ),
    Pattern(
        name="market",
        summary="a stock exchange's day: sharp opening, afternoon spike, steep close",
        source=f"{_STREAMHUB}, figures 1 and 9 (drawn from its text; 40 minutes there)",
        build=market,
        params=MarketParams,
        seeded=True,
    ),
)
