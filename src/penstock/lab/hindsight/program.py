"""The dynamic program behind hindsight: the cheapest way along a ladder of parallelisms.

From tick to tick go labels of what can be reached (`penstock.lab.hindsight.labels`). Backlogs
are not rounded: over any stretch of time with known arrivals and speeds, a queue that begins
with q ends with max(q + shift, floor), and keeps its limits on the way if q <= most. Three
numbers stand for the stretch, exact to the second.
"""

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from penstock.lab.hindsight.labels import BoolArray, FloatArray, IntArray, Labels, keep_unbeaten

#: Up to so many replicas are told apart one by one.
MAX_EXACT_REPLICAS = 400


@dataclass(frozen=True, slots=True)
class ReplicaPath:
    """From which ticks on one stands on which rungs."""

    ticks: tuple[int, ...]
    rungs: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What is to be solved. Rates and arrivals are in records offered to the pipeline."""

    #: Records that arrive in each second, and the most that may wait at its end; one row a tick.
    arrivals: FloatArray
    limits: FloatArray
    #: What each rung carries a second, and its replicas in all.
    rates: FloatArray
    totals: IntArray
    #: What is carried in each second after a change: from rung (one row: any), to rung, second.
    during: FloatArray
    #: Ticks for which a change is kept, and the first tick at which one can take effect.
    hold: int
    first: int
    #: Whether a change may only come when nothing waits.
    empty_at_change: bool = False
    #: Seconds of the last tick that lie beyond the end: they cost nothing.
    beyond_s: int = 0

    @property
    def ticks(self) -> int:
        """Number of ticks."""
        return len(self.arrivals)

    @property
    def seconds(self) -> int:
        """Length of a tick."""
        return int(self.arrivals.shape[1])

    @property
    def prices(self) -> IntArray:
        """Replicas of each rung in all, rounded up to a coarser unit where there are very many."""
        unit = max(1, int(self.totals.max()) // MAX_EXACT_REPLICAS)
        return np.asarray(-(-self.totals // unit))

    @property
    def slack(self) -> float:
        """Records that are float noise."""
        return 1e-9 * (1 + float(self.arrivals.sum()))

    @property
    def steady(self) -> FloatArray:
        """What each rung carries in each second of a tick without a change."""
        return np.broadcast_to(self.rates[:, None], (len(self.rates), self.seconds))

    def within(self, age_s: int) -> "Program":
        """The same program with limits such that no record that waits is older than that."""
        offered, second = self._offered(), np.arange(self.arrivals.size)
        limits = offered[1:] - offered[np.maximum(second + 1 - age_s, 0)]
        limits[len(limits) - self.beyond_s :] = np.inf
        return replace(self, limits=limits.reshape(self.arrivals.shape))

    def replica_s(self, course: ReplicaPath) -> int:
        """What a course costs."""
        costs = np.multiply(self._lengths(course), self.totals[list(course.rungs)])
        return int(costs.sum()) * self.seconds - int(self.totals[course.rungs[-1]]) * self.beyond_s

    def carried(self, course: ReplicaPath) -> FloatArray:
        """What can be carried in each second on a given course."""
        seconds = self._lengths(course) * self.seconds
        carried = np.repeat(self.rates[list(course.rungs)], seconds)
        for tick, (before, after) in zip(course.ticks[1:], pairwise(course.rungs), strict=True):
            begin = tick * self.seconds
            carried[begin : begin + self.during.shape[2]] = self.during[
                before % len(self.during), after
            ]
        return carried

    def worst_age_s(self, rates: FloatArray | float) -> int:
        """The oldest that a record gets while it waits, if so much is carried each second."""
        net = np.cumsum(self.arrivals.ravel() - rates)
        backlog = net - np.minimum(np.minimum.accumulate(net), 0.0)
        offered, second = self._offered(), np.arange(self.arrivals.size)
        # half the noise that limits forgive, so that a course keeps the limits of its own age
        taken = offered[1:] - backlog + self.slack / 2
        done = np.searchsorted(offered, taken, side="right") - 1
        ages = (second + 1 - done)[: self.arrivals.size - self.beyond_s]
        return max(0, int(ages.max()))

    def _offered(self) -> FloatArray:
        return np.concatenate(([0.0], np.cumsum(self.arrivals)))

    def _lengths(self, course: ReplicaPath) -> IntArray:
        """Ticks on each rung."""
        return np.diff(np.array((*course.ticks, self.ticks)))


class ConstantSpan(NamedTuple):
    """What some time does to a backlog q: max(q + shift, floor), if q <= most."""

    shift: FloatArray
    floor: FloatArray
    most: FloatArray

    def of(self, ways: Any) -> "ConstantSpan":
        """That of some ways, by place."""
        return ConstantSpan(self.shift[ways], self.floor[ways], self.most[ways])

    def after(self, backlog: FloatArray) -> tuple[FloatArray, BoolArray]:
        """What is left of each backlog, and whether it was small enough to keep the limits."""
        return np.maximum(backlog + self.shift, self.floor), backlog <= self.most


def solve(program: Program) -> ReplicaPath | None:
    """Return the cheapest course that keeps all limits, None if there is none."""
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
    """All labels one tick later."""
    stretch = _span(program, tick, program.steady).of(labels.rung)
    ends, may = stretch.after(labels.backlog)
    cost = labels.cost + program.prices[labels.rung]
    return Labels(labels.rung[may], cost[may], ends[may])


def _change(program: Program, tick: int, labels: Labels) -> Labels:
    """All labels on every rung, as long after as a change is kept."""
    labels = labels.of(_may_change(program, labels))
    if len(program.during) == 1:  # it does not matter where one comes from
        labels = keep_unbeaten([labels._replace(rung=np.zeros_like(labels.rung))], 1)
    stretch = _span(program, tick, program.during).of(labels.rung)
    ends, may = stretch.after(labels.backlog[:, None])
    cost = labels.cost[:, None] + program.hold * program.prices
    rung = np.broadcast_to(np.arange(len(program.rates)), cost.shape)
    return Labels(rung[may], cost[may], ends[may])


def _may_change(program: Program, labels: Labels) -> BoolArray:
    return labels.backlog <= (program.slack if program.empty_at_change else np.inf)


def _span(program: Program, tick: int, rates: FloatArray) -> ConstantSpan:
    """What the ticks from one on do to a backlog, for rates whose last axis are seconds."""
    end = tick + rates.shape[-1] // program.seconds
    room = program.limits[tick:end].ravel() + program.slack
    net = np.cumsum(program.arrivals[tick:end].ravel() - rates, axis=-1)
    floor = net - np.minimum(np.minimum.accumulate(net, axis=-1), 0.0)
    most = np.where((floor <= room).all(axis=-1), (room - net).min(axis=-1), -np.inf)
    return ConstantSpan(net[..., -1], floor[..., -1], most)


def _walk_back(program: Program, reached: list[Labels]) -> ReplicaPath:
    """The way to the cheapest label at the end."""
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
    """The tick and the place of the label that one came from; staying is preferred."""
    rung, cost, backlog = (part[at] for part in reached[tick])
    for length, rates in ((1, None), (program.hold, program.during)):
        begun = tick - length
        if begun < (0 if rates is None else program.first):
            continue
        labels = reached[begun]
        fits = labels.cost == cost - length * program.prices[rung]
        fits &= labels.rung == rung if rates is None else _may_change(program, labels)
        places = np.flatnonzero(fits)
        if rates is None:
            way = _span(program, begun, program.steady).of(rung)
        else:
            rows = labels.rung[places] % len(rates)  # all come by the one row, if there is only one
            way = _span(program, begun, rates).of((rows, rung))
        ends, may = way.after(labels.backlog[places])
        hits = places[may & (ends == backlog)]
        if len(hits):
            return begun, int(hits[0])
    raise AssertionError("every label but the first comes from another one")
