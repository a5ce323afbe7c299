"""The load of a run: records per second over time, a wave or a Brownian motion."""

import math
from collections.abc import Callable
from random import Random

#: Seconds for which a rate holds.
STEP_S = 0.25
#: Decisions of an instance during one wave.
_WAVE = 10
#: Standard deviation of the Brownian motion between two decisions, as a share of the range.
_SPREAD = 0.2

#: Low and high rate, seconds between two decisions, seed -> rate at a step.
Load = Callable[[float, float, float, int], Callable[[int], float]]


def wave(low: float, high: float, interval_s: float, _seed: int) -> Callable[[int], float]:
    """Return a wave that starts low; ten decisions fit into it."""
    turn = 2 * math.pi * STEP_S / (_WAVE * interval_s)
    return lambda step: low + (high - low) * (1 - math.cos(turn * step)) / 2


def brownian(low: float, high: float, interval_s: float, seed: int) -> Callable[[int], float]:
    """Return a random walk between two rates that starts in the middle; the ends reflect it."""
    random, path, spread = Random(f"{seed}/load"), [0.5], _SPREAD * math.sqrt(STEP_S / interval_s)

    def rate(step: int) -> float:
        while len(path) <= step:
            path.append(_reflect(path[-1] + random.gauss(0, spread)))
        return low + (high - low) * path[step]

    return rate


def _reflect(share: float) -> float:
    """Fold a number into [0, 1].

    >>> [_reflect(share) for share in (0.25, -0.25, 1.25, 2.5)]
    [0.25, 0.25, 0.75, 0.5]
    """
    folded = share % 2
    return 2 - folded if folded > 1 else folded


LOADS: dict[str, Load] = {"wave": wave, "brownian": brownian}
