"""Counters of the record-level simulator as immutable values."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.simulator.records.stations import RecordStation


class ServedRecord(NamedTuple):
    """One record at one operator, with the times of offer, arrival, start and completion."""

    operator: str
    replica: int
    born_s: float
    arrived_s: float
    started_s: float
    finished_s: float

    @property
    def waited_s(self) -> float:
        """Seconds in the queue."""
        return self.started_s - self.arrived_s

    @property
    def service_s(self) -> float:
        """Seconds on the replica."""
        return self.finished_s - self.started_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Numbers of offered records by outcome.

    A record that was split counts as dropped if one of its parts was dropped, and as filtered if
    no part reached a sink.
    """

    offered: int
    delivered: int
    filtered: int
    dropped: int

    @property
    def in_flight(self) -> int:
        """Records of which a part still waits or is in service."""
        return self.offered - self.delivered - self.filtered - self.dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Totals:
    """Counters of one operator since the run began; subtract two of them for an interval."""

    #: Records that arrived, were started, were completed, and were completed without output.
    arrived: int
    started: int
    completed: int
    filtered: int
    dropped: Mapping[str, int]
    sent: Mapping[str, int]
    #: Now: records in queues and on replicas; running and requested replicas.
    waiting: int
    in_service: int
    running: int
    requested: int
    #: Total waiting time of the started records.
    waited_s: float
    #: Record-seconds in the queues: the integral of their length.
    queue_s: float
    #: Replica-seconds of work, and of running replicas.
    busy_s: float
    replica_s: float
    #: Sum of service times of completed records, and of their squares.
    service_s: float
    service_squares: float
    #: Gaps between arrivals: their number, their sum, the sum of their squares.
    gaps: int
    gap_s: float
    gap_squares: float

    @property
    def all_dropped(self) -> int:
        """Dropped records of all causes."""
        return sum(self.dropped.values())


def totals_of(station: RecordStation, now_s: float) -> Totals:
    """Return the counters of one operator at a time, without changing them."""
    working = [replica for replica in station.replicas if replica.record is not None]
    waiting_s = sum(now_s - record[0] for queue in station.queues() for record in queue)
    work_s = sum(now_s - replica.started_s for replica in working)
    return Totals(
        arrived=station.arrived,
        started=station.started,
        completed=station.completed,
        filtered=station.filtered,
        dropped=FrozenDict(station.dropped),
        sent=FrozenDict({edge.target.model.name: edge.count for edge in station.edges}),
        waiting=sum(len(queue) for queue in station.queues()),
        in_service=len(working),
        running=station.running,
        requested=station.requested,
        waited_s=station.waited_s,
        queue_s=station.waited_s + station.lost_wait_s + waiting_s,
        busy_s=station.service_s + station.killed_s + work_s,
        replica_s=station.replica_s + station.running * (now_s - station.replica_s_until),
        service_s=station.service_s,
        service_squares=station.service_squares,
        gaps=max(0, station.arrived - 1),
        gap_s=station.last_arrival_s - (station.first_arrival_s or 0.0),
        gap_squares=station.gap_squares,
    )
