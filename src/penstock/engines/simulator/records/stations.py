"""The moving parts of the record-level simulator: records, replicas and their queues.

Everything here changes while the simulator runs and stays inside of it; what others may
read is in `totals`.
"""

from collections import deque
from collections.abc import Iterator
from itertools import repeat
from typing import TypeAlias

from numpy.random import SeedSequence, default_rng

from penstock.core.histogram import Histogram
from penstock.engines.simulator.records.groupings import GROUPINGS, Loads
from penstock.engines.simulator.records.model import (
    SHARED,
    RecordOperator,
    RecordPipeline,
    RecordRules,
)
from penstock.engines.simulator.records.service import BLOCK, flatten_blocks

#: Why a record was dropped: no room in the queue, too old, or its queue was thrown away.
FULL, LATE, RESTART = "queue-full", "time-out", "restart"


class Lineage:
    """A record as it was offered, and how many of its descendants are still on their way."""

    __slots__ = ("born_s", "delivered", "key", "live", "lost")

    def __init__(self, born_s: float, key: str) -> None:
        self.born_s, self.key = born_s, key
        self.live = 1
        self.delivered = self.lost = False


class Route:
    """A way from a source to an operator; records carry it, so that each path has its latency."""

    __slots__ = ("latency", "name", "onward")

    def __init__(self, name: str) -> None:
        self.name = name
        self.onward: dict[str, Route] = {}
        self.latency = Histogram()

    def to(self, name: str) -> "Route":
        """The way one operator further."""
        onward = self.onward.get(name)
        if onward is None:
            onward = self.onward[name] = Route(f"{self.name} > {name}")
        return onward

    def tree(self) -> Iterator["Route"]:
        """This way and all that go on from it."""
        yield self
        for onward in self.onward.values():
            yield from onward.tree()


#: When it came to this operator, what it descends from, how it came here.
Record: TypeAlias = tuple[float, Lineage, Route]


class Replica:
    """One replica: the record it works on and the queue that it takes from."""

    __slots__ = ("active", "index", "queue", "record", "service_s", "started_s", "station")

    def __init__(self, station: "RecordStation", index: int, queue: deque[Record]) -> None:
        self.station, self.index, self.queue = station, index, queue
        self.active = False
        self.record: Record | None = None
        self.started_s = self.service_s = 0.0


class Edge:
    """The way to a downstream operator: how many records a record becomes there.

    All edges of an operator share one uniform draw u: this one sends its whole part and one
    more if u falls into its window [offset, offset + part), which wraps at 1. So each edge
    has its own mean, and shares of at most 1 in total split the records: none goes two ways.
    """

    __slots__ = ("count", "offset", "part", "target", "whole")

    def __init__(self, target: "RecordStation", share: float, offset: float) -> None:
        self.target, self.offset = target, offset
        self.whole = int(share)
        self.part = share - self.whole
        self.count = 0


class RecordStation:
    """One operator: its replicas, of which the first `active` take records, and its counters."""

    __slots__ = (
        "active",
        "arrived",
        "completed",
        "cost",
        "dropped",
        "edges",
        "filtered",
        "first_arrival_s",
        "gap_squares",
        "grouping",
        "idle",
        "interval_s",
        "killed_s",
        "last_arrival_s",
        "loads",
        "lost_wait_s",
        "model",
        "next_draw",
        "next_service",
        "next_split",
        "paid_s",
        "paid_until_s",
        "paused_until_s",
        "replicas",
        "requested",
        "reset_s",
        "running",
        "service_s",
        "service_squares",
        "shared",
        "started",
        "starting",
        "waited_s",
        "waiting",
    )

    def __init__(self, model: RecordOperator, rules: RecordRules, seed: SeedSequence) -> None:
        self.model = model
        self.edges: list[Edge] = []
        self._seed(seed)
        self.shared: deque[Record] | None = deque() if model.queue == SHARED else None
        self.grouping = GROUPINGS.get(model.queue)
        self.interval_s, self.reset_s = rules.interval_s, 0.0
        self.cost = model.service.mean_s / rules.interval_s
        self.replicas: list[Replica] = []
        #: Replicas of a shared queue with nothing to do, the one idle for longest first.
        self.idle: deque[Replica] = deque()
        self.active = self.waiting = 0
        #: Until then no replica begins a record.
        self.paused_until_s = 0.0
        self.requested = model.replicas
        #: A ticket for each replica that is starting up, oldest first.
        self.starting: list[object] = []
        self.loads = Loads(())
        self._count_from_zero()

    def _seed(self, seed: SeedSequence) -> None:
        # a stream for each purpose: more draws for one leave the others as they were
        service, split, deal = (default_rng(child) for child in seed.spawn(3))
        uniform = flatten_blocks(lambda: deal.random(BLOCK))
        self.next_service = self.model.service.draws(service).__next__
        self.next_split = flatten_blocks(lambda: split.random(BLOCK)).__next__
        self.next_draw = (uniform if self.model.queue == "shuffle" else repeat(0.0)).__next__

    def _count_from_zero(self) -> None:
        self.arrived = self.started = self.completed = self.filtered = 0
        self.dropped = {FULL: 0, LATE: 0, RESTART: 0}
        self.first_arrival_s: float | None = None
        self.last_arrival_s = 0.0
        self.gap_squares = self.waited_s = self.lost_wait_s = 0.0
        self.service_s = self.service_squares = self.killed_s = 0.0
        self.running = 0
        self.paid_s = self.paid_until_s = 0.0

    def activate(self) -> Replica:
        """Make one more replica take records: a new one, or one from the pool."""
        if self.active == len(self.replicas):
            queue = deque() if self.shared is None else self.shared
            self.replicas.append(Replica(self, self.active, queue))
        replica = self.replicas[self.active]
        replica.active = True
        self.active += 1
        self.loads = Loads((*self.loads.utilisation, 0.0), self.loads.turn)
        return replica

    def deactivate(self, keep: int) -> list[Record]:
        """Leave the first replicas active; return what waited for the others, oldest first."""
        homeless: list[Record] = []
        for replica in self.replicas[keep : self.active]:
            replica.active = False
            if self.shared is None:
                homeless.extend(replica.queue)
                replica.queue.clear()
        self.active = keep
        self.idle = deque(replica for replica in self.idle if replica.active)
        self.loads = Loads(self.loads.utilisation[:keep], self.loads.turn)
        return sorted(homeless, key=lambda record: record[0])

    def pay(self, now_s: float, running: int) -> None:
        """Note that from now on that many replicas are there."""
        self.paid_s += self.running * (now_s - self.paid_until_s)
        self.paid_until_s, self.running = now_s, running

    def pick(self, record: Record, now_s: float) -> Replica:
        """The replica whose queue the record joins; for a shared queue an idle one if any."""
        if self.grouping is None:
            return self.idle.popleft() if self.idle else self.replicas[0]
        if now_s >= self.reset_s:
            self._new_interval(now_s)
        chosen, self.loads = self.grouping(
            self.loads, key=record[1].key, draw=self.next_draw(), cost=self.cost
        )
        return self.replicas[chosen]

    def _new_interval(self, now_s: float) -> None:
        # what still waits has to be processed in this interval too (equation 5)
        self.reset_s = (now_s // self.interval_s + 1) * self.interval_s
        held = (len(r.queue) + (r.record is not None) for r in self.replicas[: self.active])
        self.loads = Loads(tuple(min(1.0, n * self.cost) for n in held), self.loads.turn)

    def queues(self) -> Iterator[deque[Record]]:
        """Every queue in front of this operator."""
        if self.shared is not None:
            yield self.shared
        else:
            yield from (replica.queue for replica in self.replicas)


def build(pipeline: RecordPipeline, seeds: list[SeedSequence]) -> dict[str, RecordStation]:
    """The stations of a pipeline, joined by edges; no replica is active yet."""
    stations = {
        model.name: RecordStation(model, pipeline.rules, seed)
        for model, seed in zip(pipeline.operators, seeds, strict=True)
    }
    for name, station in stations.items():
        offset = 0.0
        for target in pipeline.topology.downstream[name]:
            edge = Edge(stations[target], station.model.sent.get(target, 1.0), offset)
            offset += edge.part
            station.edges.append(edge)
        if not offset:
            station.next_split = repeat(0.0).__next__
    return stations
