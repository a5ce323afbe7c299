"""The monitor of the fluid simulator: scrapes, windows and measurement errors."""

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import OperatorSnapshot, Snapshot
from penstock.core.trend import slope
from penstock.engines.simulator.fluid.step import FluidFlow, Network
from penstock.engines.simulator.profile import Monitor
from penstock.errors import NotReadyError


class Scrape(NamedTuple):
    """All counters at one instant, as totals since the run began."""

    at: float
    flows: tuple[FluidFlow, ...]
    replica_s: tuple[float, ...]


class FluidMonitor:
    """Collects scrapes and builds snapshots from them."""

    def __init__(self, network: Network, monitor: Monitor, seed: int) -> None:
        self._network, self._monitor = network, monitor
        self._draw = Random(seed)
        self._scrapes: deque[Scrape] = deque()
        self._queues: deque[tuple[float, tuple[int, ...]]] = deque()
        self._next_s = monitor.scrape_s

    def is_due(self, now_s: float) -> bool:
        """Whether a scrape is due."""
        return now_s >= self._next_s - 1e-9

    def scrape(self, now: Scrape) -> None:
        """Store a scrape; a share of them fails."""
        self._next_s += self._monitor.scrape_s
        if self._monitor.missing and self._draw.random() < self._monitor.missing:
            return
        self._scrapes.append(now)
        self._queues.append((now.at, tuple(flow.queue for flow in now.flows)))
        longest = max(self._monitor.window_s, self._monitor.scrape_s)
        while self._scrapes[0].at < now.at - longest - 1e-9:
            self._scrapes.popleft()
        while self._queues[0][0] < now.at - self._monitor.slope_window_s - 1e-9:
            self._queues.popleft()

    def forget(self, now: Scrape) -> None:
        """Reset after a restart: the counters of replicas are lost, the queue history is kept."""
        self._scrapes.clear()
        self._scrapes.append(now)
        self._next_s = now.at + self._monitor.scrape_s

    def snapshot(
        self,
        at: float,
        replicas: Sequence[int],
        requested: Sequence[int],
        bounds: Mapping[str, int | None],
    ) -> Snapshot:
        """Build a snapshot from the first and last scrape of the window."""
        if len(self._scrapes) < 2 or self._scrapes[-1].at < at - 2 * self._monitor.window_s:
            raise NotReadyError("too few scrapes since the last restart")
        first, last = self._scrapes[0], self._scrapes[-1]
        operators, offered = {}, {}
        for i, name in enumerate(self._network.names):
            measures = self._operator(i, first, last, replicas[i])
            operators[name] = OperatorSnapshot(
                name=name,
                upstream=tuple(self._network.names[up] for up in self._network.feeders[i]),
                parallelism=replicas[i],
                max_parallelism=bounds[name],
                requested=requested[i],
                queue_growth=self._slope(i),
                **measures,
            )
            if not self._network.feeders[i]:
                arrived = last.flows[i].arrived - first.flows[i].arrived
                offered[name] = arrived / (last.at - first.at)
        return Snapshot(at=at, offered=FrozenDict(offered), operators=FrozenDict(operators))

    def _operator(self, i: int, first: Scrape, last: Scrape, replicas: int) -> dict[str, Any]:
        before, now, seconds = first.flows[i], last.flows[i], last.at - first.at
        monitor = self._monitor
        replica_s = last.replica_s[i] - first.replica_s[i]
        busy = min(1.0, (now.busy_s - before.busy_s) / replica_s)
        blocked = min(1.0 - busy, (now.blocked_s - before.blocked_s) / replica_s)
        processed = now.processed - before.processed
        sent = [(n - b) / seconds for n, b in zip(now.sent, before.sent, strict=True)]
        room = self._network.room(i, replicas)
        names = [self._network.names[to] for to, _ in self._network.edges[i]]
        service_s = (now.busy_s - before.busy_s) / processed if processed else None
        return {
            "input_rate": processed / seconds,
            # the output of a sink is what it processes
            "output_rate": sum(sent) if sent else processed / seconds,
            "sent": FrozenDict(zip(names, sent, strict=True)),
            "busy": busy * monitor.busy_sees,
            # the three shares add up to 1, so work that `busy` misses counts as idle
            "idle": max(0.0, 1 - busy * monitor.busy_sees - blocked),
            "backpressured": blocked,
            "cpu": monitor.cpu_floor + (monitor.cpu_ceiling - monitor.cpu_floor) * busy,
            "queue": float(now.queue),
            "input_buffer": min(1.0, now.queue / room) if self._network.feeders[i] else None,
            "service_time_s": None if service_s is None else service_s * monitor.busy_sees,
        }

    def _slope(self, i: int) -> float | None:
        points = [(at, float(queues[i])) for at, queues in self._queues]
        if len(points) < 2:
            return None
        if self._monitor.lag_slope == "gauge-rate":
            return gauge_rate(points)
        return slope(points) or 0.0


def gauge_rate(points: Sequence[tuple[float, float]]) -> float:
    """Return the slope as Prometheus' `rate()` computes it, which is wrong for a gauge.

    `rate()` takes a decrease for a counter reset, so a shrinking backlog seems to grow.

    >>> gauge_rate([(0, 100.0), (5, 90.0), (10, 80.0)])
    17.0
    """
    increase = 0.0
    for (_, before), (_, now) in pairwise(points):
        increase += now - before if now >= before else now
    return increase / (points[-1][0] - points[0][0])
