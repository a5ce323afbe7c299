"""The life of a record: it arrives, waits, is processed, and is sent downstream or dropped."""

from collections.abc import Callable, Iterable
from heapq import heapify, heappop, heappush
from typing import Any, TypeAlias

from penstock.engines.simulator.records.stations import (
    FULL,
    LATE,
    RESTART,
    Lineage,
    Record,
    RecordStation,
    Replica,
    Route,
)
from penstock.engines.simulator.records.totals import ServedRecord

#: Time, sequence number, action and its argument.
Event: TypeAlias = tuple[float, int, Callable[[Any], None], Any]


class RecordFlow:
    """Schedules events and applies them to records.

    Events at the same time run in the order of scheduling, given by their sequence number.
    """

    __slots__ = (
        "_events",
        "_order",
        "_timeout_s",
        "_trace",
        "delivered",
        "dropped",
        "filtered",
        "now_s",
        "offered",
        "stopped",
    )

    def __init__(self, timeout_s: float | None, trace: list[ServedRecord] | None) -> None:
        self._timeout_s, self._trace = timeout_s, trace
        self._events: list[Event] = []
        self._order = 0
        self.now_s = 0.0
        #: Whether replicas may not start records.
        self.stopped = False
        self.offered = self.delivered = self.filtered = self.dropped = 0

    def at(self, time_s: float, action: Callable[[Any], None], subject: Any) -> None:
        """Schedule an action; events at the same time run in the order of scheduling."""
        self._order += 1
        heappush(self._events, (time_s, self._order, action, subject))

    def run(self, until_s: float) -> None:
        """Run all events up to and including a time."""
        events = self._events
        while events and events[0][0] <= until_s:
            self.now_s, _, action, subject = heappop(events)
            action(subject)
        self.now_s = until_s

    def offer(self, station: RecordStation, route: Route, key: str) -> None:
        """Offer a new record to a source."""
        self.offered += 1
        self.arrive(station, (self.now_s, Lineage(self.now_s, key), route))

    def arrive(self, station: RecordStation, record: Record) -> None:
        """Count the arrival of a record at an operator, and queue it."""
        now_s = self.now_s
        station.arrived += 1
        if station.first_arrival_s is None:
            station.first_arrival_s = station.last_arrival_s = now_s
        gap_s = now_s - station.last_arrival_s
        station.gap_squares += gap_s * gap_s
        station.last_arrival_s = now_s
        self.join(station, record, station.model.queue_size)

    def join(self, station: RecordStation, record: Record, room: int | None = None) -> None:
        """Give a record to a free replica, or queue it if there is room (None: always)."""
        replica = station.pick(record, self.now_s)
        paused = self.stopped or self.now_s < station.paused_until_s
        free = replica.record is None and not paused
        if not free and room is not None and station.waiting >= room:
            self._drop(station, record, FULL)
            return
        station.waiting += 1
        replica.queue.append(record)
        if free:
            self.take(replica)

    def take(self, replica: Replica) -> None:
        """Start the next record that is not too old on a free replica, or mark it idle."""
        station, queue, now_s = replica.station, replica.queue, self.now_s
        if now_s < station.paused_until_s:
            return
        while queue:
            record = queue.popleft()
            station.waiting -= 1
            if self._timeout_s is not None and now_s - record[1].born_s > self._timeout_s:
                station.lost_wait_s += now_s - record[0]
                self._drop(station, record, LATE)
                continue
            replica.record, replica.started_s = record, now_s
            replica.service_s = station.next_service()
            station.started += 1
            station.waited_s += now_s - record[0]
            # inlined `at`, which saves a call per record
            self._order += 1
            event = (now_s + replica.service_s, self._order, self._complete, replica)
            heappush(self._events, event)
            return
        if station.shared is not None:
            station.idle.append(replica)

    def stop(self, stations: Iterable[RecordStation]) -> None:
        """Drop all waiting and running records; none starts until `stopped` is False."""
        self.stopped = True
        # in place, because `run` keeps a reference to this list
        self._events[:] = [event for event in self._events if event[2] != self._complete]
        heapify(self._events)
        for station in stations:
            self._empty(station)

    def _empty(self, station: RecordStation) -> None:
        for queue in station.queues():
            for record in queue:
                station.lost_wait_s += self.now_s - record[0]
                self._drop(station, record, RESTART)
            queue.clear()
        station.waiting = 0
        station.idle.clear()
        for replica in station.replicas:
            if replica.record is not None:
                station.killed_s += self.now_s - replica.started_s
                self._drop(station, replica.record, RESTART)
                replica.record = None

    def _complete(self, replica: Replica) -> None:
        record, station, service_s = replica.record, replica.station, replica.service_s
        assert record is not None, "only a replica with a record is awaited"
        station.completed += 1
        station.service_s += service_s
        station.service_squares += service_s * service_s
        if self._trace is not None:
            times_s = (record[1].born_s, record[0], replica.started_s, self.now_s)
            self._trace.append(ServedRecord(station.model.name, replica.index, *times_s))
        replica.record = None
        if station.edges:
            self._send(station, record)
        else:
            record[1].delivered = True
            record[2].latency.add(self.now_s - record[1].born_s)
        self._settle(record[1])
        if replica.active:
            self.take(replica)

    def _send(self, station: RecordStation, record: Record) -> None:
        _, lineage, route = record
        draw, sent = station.next_split(), 0
        for edge in station.edges:
            count = edge.whole + ((draw - edge.offset) % 1.0 < edge.part)
            if count:
                edge.count += count
                sent += count
                # before the first arrival, which may drop the record at once
                lineage.live += count
                onward = (self.now_s, lineage, route.to(edge.target.model.name))
                for _ in range(count):
                    self.arrive(edge.target, onward)
        station.filtered += not sent

    def _drop(self, station: RecordStation, record: Record, cause: str) -> None:
        station.dropped[cause] += 1
        record[1].lost = True
        self._settle(record[1])

    def _settle(self, lineage: Lineage) -> None:
        # one descendant of an offered record has ended; the last one decides how the record counts
        lineage.live -= 1
        if lineage.live:
            return
        if lineage.lost:
            self.dropped += 1
        elif lineage.delivered:
            self.delivered += 1
        else:
            self.filtered += 1
