"""Arrival processes: when single records come, given how many are offered at each second.

Gaps are drawn for a load of one record a second and then bent to the workload: the
record that would come at time `u` comes when the workload has offered `u` records. So
every process offers the workload's rate at each second, whatever its gaps.

The squared coefficient of variation (scv: variance over squared mean of the gaps) measures
how uneven they are: 0 evenly spaced, 1 Poisson, above 1 in bursts.
"""

from collections.abc import Callable, Iterator

import numpy as np

from penstock.errors import InputError, nearest
from penstock.workloads.piecewise import FloatArray
from penstock.workloads.workload import Workload

#: Gaps of mean 1: (generator, how many) -> array.
Gaps = Callable[[np.random.Generator, int], FloatArray]

#: Default scv of the bursty process.
BURSTY_SCV = 4.0
_CHUNK = 1 << 16


def arrivals(
    kind: str, load: Workload, *, seed: int, scv: float = BURSTY_SCV
) -> Iterator[FloatArray]:
    """Return the process of a name: deterministic, poisson, or bursty with that scv.

    >>> load = Workload.of_steps([2, 4], step_s=1)
    >>> [times.tolist() for times in arrivals("deterministic", load, seed=1)]
    [[0.5, 1.0, 1.25, 1.5, 1.75, 2.0]]
    """
    known = {"deterministic": 0.0, "poisson": 1.0, "bursty": scv}
    if kind not in known:
        raise InputError("arrivals", f"unknown arrival process {kind!r}", nearest(kind, known))
    return arrival_times(load, scv=known[kind], seed=seed)


def arrival_times(
    load: Workload, *, scv: float, seed: int, chunk: int = _CHUNK
) -> Iterator[FloatArray]:
    """Yield the seconds at which records arrive, in order, `chunk` at a time at most.

    With scv 0 exactly `load.count(0, t)` records have come by second `t`; else that
    many are expected: the first gap is drawn as if the process had always been running.
    """
    if not 0 <= scv < float("inf"):
        raise InputError("scv", f"must be finite and at least 0, got {scv}")
    return _evenly(load, chunk) if scv == 0 else _renewal(load, scv, seed, chunk)


def _evenly(load: Workload, chunk: int) -> Iterator[FloatArray]:
    total = load.total_records
    for begin in range(0, total, chunk):
        due = np.arange(begin + 1, min(begin + chunk, total) + 1, dtype=float)
        # float noise may leave the last record a hair above the integral
        yield load.when(np.minimum(due, load.integral(load.duration_s)))


def _renewal(load: Workload, scv: float, seed: int, chunk: int) -> Iterator[FloatArray]:
    random = np.random.default_rng(seed)
    draw, first = _gaps(scv)
    total = load.integral(load.duration_s)
    reached = float(first(random, 1)[0])
    while reached <= total:
        gaps = draw(random, chunk)
        due = reached + np.concatenate(([0.0], np.cumsum(gaps)))
        reached = float(due[-1])
        due = due[:-1]
        yield load.when(due[due <= total])


def _gaps(scv: float) -> tuple[Gaps, Gaps]:
    """Return how gaps are drawn, and how the first one is.

    Below 1 gaps have a gamma distribution; above 1 they are hyperexponential, a mix of
    two exponential ones that each make up half of the time (balanced means). The first
    gap is what is left of a gap at a time picked at random.
    """
    if scv < 1:
        shape = 1 / scv

        def gamma(random: np.random.Generator, size: int) -> FloatArray:
            return random.gamma(shape, scv, size)

        def rest_of_gamma(random: np.random.Generator, size: int) -> FloatArray:
            # a gap met at random is longer (shape + 1), and its rest is any share of it
            return random.gamma(shape + 1, scv, size) * random.random(size)

        return gamma, rest_of_gamma
    often = (1 + np.sqrt((scv - 1) / (scv + 1))) / 2

    def mixed(share: float) -> Gaps:
        def draw(random: np.random.Generator, size: int) -> FloatArray:
            short = random.random(size) < share
            mean = np.where(short, 1 / (2 * often), 1 / (2 * (1 - often)))
            gaps: FloatArray = random.standard_exponential(size) * mean
            return gaps

        return draw

    return mixed(often), mixed(0.5)
