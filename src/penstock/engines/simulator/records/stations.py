"""Mutable state of the record-level simulator: records, replicas and queues.

Only the simulator uses it; `totals` has immutable values for other modules.
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

#: Causes of a drop: the queue is full, the record is too old, or the pipeline restarts.
FULL, LATE, RESTART = "queue-full", "time-out", "restart"


class Lineage:
    """An offered record, and the number of its descendants still in the pipeline."""

    __slots__ = ("born_s", "delivered", "key", "live", "lost")

    def __init__(self, born_s: float, key: str) -> None:
        self.born_s, self.key = born_s, key
        self.live = 1
        self.delivered = self.lost = False


class Route:
    """A path from a source to an operator; each record refers to its path, for latency by path."""

    __slots__ = ("latency", "name", "onward")

    def __init__(self, name: str) -> None:
        self.name = name
        self.onward: dict[str, Route] = {}
        self.latency = Histogram()

    def to(self, name: str) -> "Route":
        """Return the path extended by one operator."""
        onward = self.onward.get(name)
        if onward is None:
            onward = self.onward[name] = Route(f"{self.name} > {name}")
        return onward

    def tree(self) -> Iterator["Route"]:
        """Yield this path and all its extensions."""
        yield self
        for onward in self.onward.values():
            yield from onward.tree()


#: Arrival time at this operator, the offered record it descends from, and its path.
Record: TypeAlias = tuple[float, Lineage, Route]


class Replica:
    """One replica: its current record and its queue."""

    __slots__ = ("active", "index", "queue", "record", "service_s", "started_s", "station")

    def __init__(self, station: "RecordStation", index: int, queue: deque[Record]) -> None:
        self.station, self.index, self.queue = station, index, queue
        self.active = False
        self.record: Record | None = None
        self.started_s = self.service_s = 0.0


class Edge:
    """The edge to a downstream operator, with the records sent per record.

    All edges of an operator share one uniform draw u. An edge sends `whole` records, and one more
    if u is in [offset, offset + part), which wraps around at 1. So each edge has its exact mean,
    and edges whose shares add up to at most 1 never send the same record twice.
    """

    __slots__ = ("count", "offset", "part", "target", "whole")

    def __init__(self, target: "RecordStation", share: float, offset: float) -> None:
        self.target, self.offset = target, offset
        self.whole = int(share)
        self.part = share - self.whole
        self.count = 0


class RecordStation:
    """One operator: its replicas, of which the first `active` process records, and counters."""

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
        "paused_until_s",
        "replica_s",
        "replica_s_until",
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
        #: Idle replicas of a shared queue, the longest idle first.
        self.idle: deque[Replica] = deque()
        self.active = self.waiting = 0
        #: Time until which no replica starts a record.
        self.paused_until_s = 0.0
        self.requested = model.replicas
        #: A token for each replica that is starting, oldest first.
        self.starting: list[object] = []
        self.loads = Loads(())
        self._count_from_zero()

    def _seed(self, seed: SeedSequence) -> None:
        # one random stream per purpose, so that they do not influence each other
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
        self.replica_s = self.replica_s_until = 0.0

    def activate(self) -> Replica:
        """Activate one more replica: a new one, or one that was deactivated before."""
        if self.active == len(self.replicas):
            queue = deque() if self.shared is None else self.shared
            self.replicas.append(Replica(self, self.active, queue))
        replica = self.replicas[self.active]
        replica.active = True
        self.active += 1
        self.loads = Loads((*self.loads.utilisation, 0.0), self.loads.turn)
        return replica

    def deactivate(self, keep: int) -> list[Record]:
        """Keep the first replicas active; return the records queued at the others, oldest first."""
        moved_records: list[Record] = []
        for replica in self.replicas[keep : self.active]:
            replica.active = False
            if self.shared is None:
                moved_records.extend(replica.queue)
                replica.queue.clear()
        self.active = keep
        self.idle = deque(replica for replica in self.idle if replica.active)
        self.loads = Loads(self.loads.utilisation[:keep], self.loads.turn)
        return sorted(moved_records, key=lambda record: record[0])

    def set_running(self, now_s: float, running: int) -> None:
        """Set the number of running replicas from now on, and add up replica-seconds."""
        self.replica_s += self.running * (now_s - self.replica_s_until)
        self.replica_s_until, self.running = now_s, running

    def pick(self, record: Record, now_s: float) -> Replica:
        """Choose the replica for a record; for a shared queue, an idle one if there is any."""
        if self.grouping is None:
            return self.idle.popleft() if self.idle else self.replicas[0]
        if now_s >= self.reset_s:
            self._new_interval(now_s)
        chosen, self.loads = self.grouping(
            self.loads, key=record[1].key, draw=self.next_draw(), cost=self.cost
        )
        return self.replicas[chosen]

    def _new_interval(self, now_s: float) -> None:
        # waiting records also have to be processed in this interval (equation 5)
        self.reset_s = (now_s // self.interval_s + 1) * self.interval_s
        records = (len(r.queue) + (r.record is not None) for r in self.replicas[: self.active])
        self.loads = Loads(tuple(min(1.0, n * self.cost) for n in records), self.loads.turn)

    def queues(self) -> Iterator[deque[Record]]:
        """Yield every queue of this operator."""
        if self.shared is not None:
            yield self.shared
        else:
            yield from (replica.queue for replica in self.replicas)


def build(pipeline: RecordPipeline, seeds: list[SeedSequence]) -> dict[str, RecordStation]:
    """Build the stations of a pipeline and their edges; no replica is active yet."""
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
