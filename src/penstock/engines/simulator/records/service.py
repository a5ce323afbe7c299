"""Distributions of service times: the time that a replica needs for one record.

A distribution has a mean and, where it is not fixed, a squared coefficient of variation
(scv = variance / mean²), which queueing formulas use.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from penstock.core.params import Params, param
from penstock.errors import InputError

#: Draws per block: many enough to outweigh the cost of a NumPy call, few enough to waste little.
BLOCK = 1024

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Family:
    """A kind of distribution: its default scv, its range of scv, and its draws."""

    usual_scv: float
    lowest_scv: float
    highest_scv: float
    #: Returns a block of draws, given a generator, a mean and an scv above 0.
    block: Callable[[Generator, float, float], Floats]


def _constant(_rng: Generator, mean_s: float, _scv: float) -> Floats:
    return np.full(BLOCK, mean_s)


def _exponential(rng: Generator, mean_s: float, _scv: float) -> Floats:
    return rng.exponential(mean_s, BLOCK)


def _lognormal(rng: Generator, mean_s: float, scv: float) -> Floats:
    variance = math.log1p(scv)
    return rng.lognormal(math.log(mean_s) - variance / 2, math.sqrt(variance), BLOCK)


def _gamma(rng: Generator, mean_s: float, scv: float) -> Floats:
    return rng.gamma(1 / scv, mean_s * scv, BLOCK)


def _hyperexponential(rng: Generator, mean_s: float, scv: float) -> Floats:
    # two exponential phases that each contribute half of the mean ("balanced means")
    share = (1 + math.sqrt((scv - 1) / (scv + 1))) / 2
    slow = rng.random(BLOCK) >= share
    return rng.exponential(1.0, BLOCK) * np.where(
        slow, mean_s / (2 * (1 - share)), mean_s / (2 * share)
    )


def _uniform(rng: Generator, mean_s: float, scv: float) -> Floats:
    half = mean_s * math.sqrt(3 * scv)
    return rng.uniform(mean_s - half, mean_s + half, BLOCK)


FAMILIES: dict[str, Family] = {
    "deterministic": Family(0, 0, 0, _constant),
    "exponential": Family(1, 1, 1, _exponential),
    "lognormal": Family(1, 0, math.inf, _lognormal),
    "gamma": Family(1, 0, math.inf, _gamma),
    "erlang": Family(1 / 2, 0, 1, _gamma),
    "hyperexponential": Family(4, 1, math.inf, _hyperexponential),
    "uniform": Family(1 / 3, 0, 1 / 3, _uniform),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceTime(Params):
    """The service time of one record on one replica.

    >>> ServiceTime(distribution="uniform", mean_s=0.2).spread
    0.3333333333333333
    >>> ServiceTime(distribution="exponential", mean_s=0.2, scv=4)
    Traceback (most recent call last):
    penstock.errors.InputError: scv: must be 1 for exponential, got 4
    hint: leave it out, or choose lognormal, gamma or hyperexponential
    """

    distribution: str = param("exponential", "kind of distribution", choices=tuple(FAMILIES))
    mean_s: float = param(0.01, "mean service time of a record", unit="s", low=0)
    scv: float | None = param(None, "variance / mean²; None for the kind's usual one", low=0)

    def check(self) -> None:
        """Refuse an scv that is impossible for the distribution."""
        family, scv = FAMILIES[self.distribution], self.spread
        low, high = family.lowest_scv, family.highest_scv
        if not low <= scv <= high:
            bound = f"{low:g}" if low == high else f"from {low:g} to {high:g}"
            hint = "leave it out, or choose lognormal, gamma or hyperexponential"
            raise InputError("scv", f"must be {bound} for {self.distribution}, got {scv:g}", hint)
        if self.distribution == "erlang" and not _is_one_over_whole(scv):
            hint = "gamma takes any"
            raise InputError("scv", f"must be 1, 1/2, 1/3, ... for erlang, got {scv:g}", hint)

    @property
    def spread(self) -> float:
        """The given scv, or else the default of the distribution."""
        return FAMILIES[self.distribution].usual_scv if self.scv is None else self.scv

    def draws(self, rng: Generator) -> Iterator[float]:
        """Return an endless stream of service times in seconds.

        >>> service = ServiceTime(distribution="deterministic", mean_s=0.2)
        >>> next(service.draws(np.random.default_rng(1)))
        0.2
        """
        if not self.mean_s or not self.spread:
            return repeat(self.mean_s)
        block, mean_s, scv = FAMILIES[self.distribution].block, self.mean_s, self.spread
        return flatten_blocks(lambda: block(rng, mean_s, scv))


def flatten_blocks(block: Callable[[], Floats]) -> Iterator[float]:
    """Yield single draws from blocks, endlessly."""
    while True:
        yield from block().tolist()


def _is_one_over_whole(scv: float) -> bool:
    return scv > 0 and math.isclose(1 / scv, round(1 / scv), rel_tol=1e-6)
