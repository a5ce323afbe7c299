"""The dynamic program behind hindsight: the cheapest path along a ladder of parallelisms.

Labels (`penstock.lab.hindsight.labels`) of the reachable states pass from tick to tick. Backlogs
are not rounded: over a span of time with known arrivals and speeds, a queue of length q at the
start has length max(q + shift, floor) at the end, and stays within its limits if q <= most. These
three numbers describe the span exactly.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from penstock.lab.hindsight.labels import BoolArray, FloatArray, IntArray, Labels, keep_unbeaten

#: Above this total, replicas are counted in coarser units.
MAX_EXACT_REPLICAS = 400


@dataclass(frozen=True, slots=True)
class ReplicaPath:
    """A path along a ladder: each rung with its first tick."""

    ticks: tuple[int, ...]
    rungs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """The problem to solve. Rates and arrivals are in records offered to the pipeline."""

    #: Arrivals in each second, and the maximum backlog at its end; one row per tick.
    arrivals: FloatArray
    limits: FloatArray
    #: Capacity of each rung in records/s, and its total replicas.
    rates: FloatArray
    totals: IntArray
    #: Capacity in each second after a change: from rung (one row: any), to rung, second.
    during: FloatArray
    #: Minimum ticks between changes, and the first tick at which a change can take effect.
    hold: int
    first: int
    #: Whether a change needs an empty queue.
    empty_at_change: bool = False
    #: Seconds of the last tick after the end of the run; they cost nothing.
    beyond_s: int = 0

    @property
    def ticks(self) -> int:
        """The number of ticks."""
        return len(self.arrivals)

    @property
    def seconds(self) -> int:
        """The length of a tick."""
        return int(self.arrivals.shape[1])

    @property
    def prices(self) -> IntArray:
        """Return the total replicas of each rung, in a coarser unit if there are very many."""
        unit = max(1, int(self.totals.max()) // MAX_EXACT_REPLICAS)
        return np.asarray(-(-self.totals // unit))

    @property
    def slack(self) -> float:
        """Return the tolerance for rounding errors, in records."""
        return 1e-9 * (1 + float(self.arrivals.sum()))

    @property
    def steady(self) -> FloatArray:
        """Return the capacity of each rung in each second of a tick without a change."""
        return np.broadcast_to(self.rates[:, None], (len(self.rates), self.seconds))

    def within(self, age_s: int) -> "Program":
        """Return the program with limits such that no waiting record is older than `age_s`."""
        offered, second = self._offered(), np.arange(self.arrivals.size)
        limits = offered[1:] - offered[np.maximum(second + 1 - age_s, 0)]
        limits[len(limits) - self.beyond_s :] = np.inf
        return replace(self, limits=limits.reshape(self.arrivals.shape))

    def replica_s(self, course: ReplicaPath) -> int:
        """Return the replica-seconds of a path."""
        costs = np.multiply(self._lengths(course), self.totals[list(course.rungs)])
        return int(costs.sum()) * self.seconds - int(self.totals[course.rungs[-1]]) * self.beyond_s

    def carried(self, course: ReplicaPath) -> FloatArray:
        """Return the capacity in each second of a path."""
        seconds = self._lengths(course) * self.seconds
        carried = np.repeat(self.rates[list(course.rungs)], seconds)
        for tick, (before, after) in zip(course.ticks[1:], pairwise(course.rungs), strict=True):
            begin = tick * self.seconds
            carried[begin : begin + self.during.shape[2]] = self.during[
                before % len(self.during), after
            ]
        return carried

    def worst_age_s(self, rates: FloatArray | float) -> int:
        """Return the maximum age of a waiting record at the given capacity per second."""
        net = np.cumsum(self.arrivals.ravel() - rates)
        backlog = net - np.minimum(np.minimum.accumulate(net), 0.0)
        offered, second = self._offered(), np.arange(self.arrivals.size)
        # half the tolerance of the limits, so that a path meets limits made from its worst age
        taken = offered[1:] - backlog + self.slack / 2
        done = np.searchsorted(offered, taken, side="right") - 1
        ages = (second + 1 - done)[: self.arrivals.size - self.beyond_s]
        return max(0, int(ages.max()))

    def _offered(self) -> FloatArray:
        return np.concatenate(([0.0], np.cumsum(self.arrivals)))

    def _lengths(self, course: ReplicaPath) -> IntArray:
        """Return the number of ticks on each rung."""
        return np.diff(np.array((*course.ticks, self.ticks)))


class ConstantSpan(NamedTuple):
    """The effect of a span of time on a backlog q: max(q + shift, floor), if q <= most."""

    shift: FloatArray
    floor: FloatArray
    most: FloatArray

    def of(self, ways: Any) -> "ConstantSpan":
        """Return some spans, by index."""
        return ConstantSpan(self.shift[ways], self.floor[ways], self.most[ways])

    def after(self, backlog: FloatArray) -> tuple[FloatArray, BoolArray]:
        """Return each backlog at the end, and whether it stays within the limits."""
        return np.maximum(backlog + self.shift, self.floor), backlog <= self.most


def solve(program: Program) -> ReplicaPath | None:
    """Return the cheapest path that keeps all limits; None if there is none."""
    rungs = np.arange(len(program.rates))
    reached = [Labels(rungs, np.zeros_like(rungs), np.zeros(len(rungs)))]
    coming: dict[int, list[Labels]] = {}
    for tick in range(program.ticks):
        coming.setdefault(tick + 1, []).append(_stay(program, tick, reached[tick]))
        if program.first <= tick <= program.ticks - program.hold:
            changed = _change(program, tick, reached[tick])
            coming.setdefault(tick + program.hold, []).append(changed)
        reached.append(keep_unbeaten(coming.pop(tick + 1), len(rungs)))
    return _walk_back(program, reached) if len(reached[-1].rung) else None


def _stay(program: Program, tick: int, labels: Labels) -> Labels:
    """Return all labels one tick later, without a change."""
    span = _span(program, tick, program.steady).of(labels.rung)
    ends, may = span.after(labels.backlog)
    cost = labels.cost + program.prices[labels.rung]
    return Labels(labels.rung[may], cost[may], ends[may])


def _change(program: Program, tick: int, labels: Labels) -> Labels:
    """Return the labels on every rung after a change and its minimum duration."""
    labels = labels.of(_may_change(program, labels))
    if len(program.during) == 1:  # the rung before does not matter
        labels = keep_unbeaten([labels._replace(rung=np.zeros_like(labels.rung))], 1)
    span = _span(program, tick, program.during).of(labels.rung)
    ends, may = span.after(labels.backlog[:, None])
    cost = labels.cost[:, None] + program.hold * program.prices
    rung = np.broadcast_to(np.arange(len(program.rates)), cost.shape)
    return Labels(rung[may], cost[may], ends[may])


def _may_change(program: Program, labels: Labels) -> BoolArray:
    return labels.backlog <= (program.slack if program.empty_at_change else np.inf)


def _span(program: Program, tick: int, rates: FloatArray) -> ConstantSpan:
    """Return the effect on a backlog from a tick on; the last axis of `rates` is seconds."""
    end = tick + rates.shape[-1] // program.seconds
    room = program.limits[tick:end].ravel() + program.slack
    net = np.cumsum(program.arrivals[tick:end].ravel() - rates, axis=-1)
    floor = net - np.minimum(np.minimum.accumulate(net, axis=-1), 0.0)
    most = np.where((floor <= room).all(axis=-1), (room - net).min(axis=-1), -np.inf)
    return ConstantSpan(net[..., -1], floor[..., -1], most)


def _walk_back(program: Program, reached: list[Labels]) -> ReplicaPath:
    """Return the path to the cheapest label at the end."""
    labels = reached[-1]
    beyond = program.prices[labels.rung] * program.beyond_s
    at = int(np.argmin(labels.cost * program.seconds - beyond))
    rungs, ticks, tick = [int(labels.rung[at])], [], program.ticks
    while tick > 0:
        tick, at_before = _origin(program, reached, tick, at)
        rung = int(reached[tick].rung[at_before])
        if rung != rungs[-1]:
            ticks.append(tick)
            rungs.append(rung)
        at = at_before
    return ReplicaPath((0, *ticks[::-1]), tuple(rungs[::-1]))


def _origin(program: Program, reached: list[Labels], tick: int, at: int) -> tuple[int, int]:
    """Return tick and index of the label before; a label without a change is preferred."""
    rung, cost, backlog = (part[at] for part in reached[tick])
    for length, rates in ((1, None), (program.hold, program.during)):
        start = tick - length
        if start < (0 if rates is None else program.first):
            continue
        labels = reached[start]
        fits = labels.cost == cost - length * program.prices[rung]
        fits &= labels.rung == rung if rates is None else _may_change(program, labels)
        places = np.flatnonzero(fits)
        if rates is None:
            span = _span(program, start, program.steady).of(rung)
        else:
            rows = labels.rung[places] % len(rates)  # a single row serves all rungs
            span = _span(program, start, rates).of((rows, rung))
        ends, may = span.after(labels.backlog[places])
        hits = places[may & (ends == backlog)]
        if len(hits):
            return start, int(hits[0])
    raise AssertionError("every label except the first has a predecessor")
