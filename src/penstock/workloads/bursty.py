"""Generates `data/bursty.csv`: a synthetic load like that of a social network.

A slow daily swing with noise; now and then news breaks: the rate jumps within a minute
or two, fades slowly, and is sometimes echoed half an hour later. In between come
lulls, as when a collector fails. It contains no real data.

`python -m penstock.workloads.bursty > src/penstock/workloads/data/bursty.csv` makes it anew.
"""

import math
import sys
from collections.abc import Sequence

from penstock.workloads.java_random import JavaRandom

SEED = 2015
MINUTES = 720
_MEAN = 1000.0
_NEWS_CHANCE = 1 / 60
_ECHO_CHANCE = 0.4
_LULL_CHANCE = 1 / 180
_LULL_MINUTES = 12


def bursty_rates(seed: int = SEED, minutes: int = MINUTES) -> list[int]:
    """Return a whole rate a minute, records/s; the mean is near 1000.

    >>> max(bursty_rates()) > 3 * sorted(bursty_rates())[MINUTES // 2]
    True
    """
    random = JavaRandom(seed)
    news = _news(random, minutes)
    lulls = _lulls(random, minutes)
    wander, shapes = 0.0, []
    for minute in range(minutes):
        wander = 0.85 * wander + 0.08 * random.next_gaussian()
        daily = 1 - 0.45 * math.cos(2 * math.pi * (minute / 1440 + 0.1))
        shapes.append((daily * math.exp(wander) + news[minute]) * lulls[minute])
    level = _MEAN * minutes / math.fsum(shapes)
    return [round(level * shape) for shape in shapes]


def _news(random: JavaRandom, minutes: int) -> Sequence[float]:
    """Return what bursts add to each minute: a steep rise, a slow decay, perhaps an echo."""
    extra = [0.0] * minutes
    for minute in range(minutes):
        comes, size, echo = (random.next_double() for _ in range(3))
        if comes >= _NEWS_CHANCE:
            continue
        height = min(1.2 * (1 - size) ** (-1 / 1.5), 8.0)
        _burst(extra, minute, height, fade=6 + 14 * echo)
        if echo < _ECHO_CHANCE:
            _burst(extra, minute + 30, height / 2, fade=10)
    return extra


def _burst(extra: list[float], begin: int, height: float, fade: float) -> None:
    for minute in range(begin, len(extra)):
        age = minute - begin
        extra[minute] += height * (0.5 if age == 0 else math.exp(-(age - 1) / fade))


def _lulls(random: JavaRandom, minutes: int) -> Sequence[float]:
    """Return the share of each minute's load that is left."""
    share = [1.0] * minutes
    for minute in range(minutes):
        comes, length = random.next_double(), random.next_double()
        if comes < _LULL_CHANCE:
            end = minute + 3 + int(length * _LULL_MINUTES)
            share[minute:end] = [0.15] * len(share[minute:end])
    return share


def bursty_csv() -> str:
    """Return the file that ships, to the byte."""
    rows = (f"{60 * minute},{rate}" for minute, rate in enumerate(bursty_rates()))
    return "\n".join(["time_s,rate", *rows]) + "\n"


if __name__ == "__main__":
    sys.stdout.write(bursty_csv())
