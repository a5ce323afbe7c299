"""Tracks one operator: its query, its batches, its backlog."""

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.events import DroppedEvent, Event, LateEvent, RunningEvent
from penstock.engines.microbatch.arrivals import Arrivals
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_snapshot import OperatorWindow


class BatchSource(Protocol):
    """The records of an operator."""

    @property
    def next(self) -> int:
        """The batch whose record comes next."""
        ...

    def read_new(self) -> list[BatchRecord]:
        """Return those that came since the last call."""
        ...


class TopicPosition(Protocol):
    """A topic, as far as rows wait in it."""

    @property
    def first(self) -> int:
        """The offset of the oldest row."""
        ...

    @property
    def end(self) -> int:
        """The offset behind the newest row."""
        ...

    def refresh(self) -> int:
        """Look for what came in; return the end."""
        ...


@dataclass(slots=True, kw_only=True)
class OperatorTracker:
    """What the driver knows of one operator. Wanted, requested and running replicas differ."""

    name: str
    upstream: tuple[str, ...]
    min_replicas: int = 1
    max_replicas: int
    log: BatchSource
    topics: dict[str, TopicPosition]
    batch_s: float
    #: Rows that may wait before those who fill its queue are held; None for any number.
    queue_limit: int | None = None
    requested: int
    running: int
    #: Wall clock of the request; None once it runs.
    requested_at: float | None = None
    batches_since: int = 0
    #: Whether it has stopped for a change that is under way.
    is_changing: bool = False
    position: dict[str, int] = field(default_factory=dict)
    records: deque[BatchRecord] = field(default_factory=deque)
    new_records: list[BatchRecord] = field(default_factory=list)
    queues: deque[tuple[float, float]] = field(default_factory=deque)
    #: (wall clock, rows that ever came in).
    offers: deque[tuple[float, float]] = field(default_factory=deque)
    held: deque[tuple[float, float]] = field(default_factory=deque)
    rows_in: int = 0
    rows_dropped: int = 0
    #: Rows that came after the watermark, and the topic that keeps them.
    rows_late: int = 0
    late_to: str | None = None
    replica_s: float = 0.0
    #: Rows that wait outside of the pipeline, in front of the ingests that fill its topics.
    outside: float = 0.0
    #: Where latency does not count from event times: when rows arrived.
    arrivals: Arrivals | None = None

    @property
    def is_source(self) -> bool:
        """Whether no other operator feeds it."""
        return not self.upstream

    @property
    def offered(self) -> int:
        """Rows that ever came into its topics."""
        return sum(topic.end for topic in self.topics.values())

    @property
    def taken(self) -> int:
        """Rows that it has left behind, processed or dropped."""
        return sum(self.position.values())

    def begin(self) -> None:
        """Start where the records of an earlier start end."""
        for record in self.log.read_new():
            self._count(record)
            if record.totals:  # the records of the first batches may be gone
                self.rows_in = record.totals["rows_in"]
                self.rows_dropped = record.totals["dropped"]
                self.rows_late = record.totals["late"]
        self.clear_new()
        for name, topic in self.topics.items():
            self.position.setdefault(name, topic.first)

    def clear_new(self) -> None:
        """Forget which records came since the last status."""
        self.new_records = []

    def request(self, replicas: int, now: float) -> None:
        """Note that another number of replicas is requested."""
        self.requested, self.batches_since = replicas, 0
        self.requested_at = now if replicas != self.running else None

    def update(self, now: float, window_s: float, held_s: float | None = None) -> list[Event]:
        """Read what is new; `now` is the wall clock. Events have wall clock times, too.

        `held_s` are the seconds during which back-pressure kept it from reading so far.
        """
        events: list[Event] = []
        for record in self.log.read_new():
            events += self._count(record)
        for topic in self.topics.values():
            topic.refresh()
        waiting = float(self.offered - self.taken)
        self.queues.append((now, waiting + self.outside))
        self.offers.append((now, self.offered + self.outside))
        if self.requested_at is not None and not waiting and not self.is_changing:
            # with nothing to do there is no batch; the order stands for the next row
            events.append(self._runs(now))
        self._forget(now - window_s)
        if held_s is not None:
            self.held.append((now, held_s))
        return events

    def _count(self, record: BatchRecord) -> list[Event]:
        self.position.update(record.end)
        if not record.tasks:  # state was dealt anew, and nothing else
            return []
        if self.arrivals is not None:
            record = self.arrivals.assign_arrivals(record)
        self.records.append(record)
        self.new_records.append(record)
        self.rows_in += record.rows_in
        events: list[Event] = []
        if record.dropped:
            lost = sum(record.dropped.values())
            self.rows_dropped += lost
            at, causes = record.committed_at, FrozenDict(record.dropped)
            events.append(DroppedEvent(at=at, operator=self.name, causes=causes, records=lost))
        if late := sum(task.late for task in record.tasks):
            events.append(self.count_late(late, record.committed_at))
        self.batches_since += 1
        if record.replicas == self.requested and self.requested_at is not None:
            events.append(self._runs(record.planned_at))
        self.running = record.replicas
        return events

    def count_late(self, rows: int, at: float) -> LateEvent:
        """Count rows that came after the watermark."""
        self.rows_late += rows
        total, late_topic = self.rows_late, self.late_to or ""
        return LateEvent(
            at=at, operator=self.name, records=rows, total=total, late_topic=late_topic
        )

    def _runs(self, at: float) -> RunningEvent:
        assert self.requested_at is not None
        event = RunningEvent(
            at=at,
            operator=self.name,
            replicas=self.requested,
            after_s=round(max(0.0, at - self.requested_at), 3),
            batches=self.batches_since,
        )
        self.running, self.requested_at = self.requested, None
        return event

    def _forget(self, before: float) -> None:
        while len(self.records) > 1 and self.records[1].committed_at <= before:
            self.records.popleft()
        for samples in (self.queues, self.offers, self.held):
            while len(samples) > 1 and samples[1][0] <= before:
                samples.popleft()

    def window(self, now: float, begin: float) -> OperatorWindow:
        """Return what a snapshot of it is built from."""
        return OperatorWindow(
            name=self.name,
            upstream=self.upstream,
            min_replicas=self.min_replicas,
            max_replicas=self.max_replicas,
            requested=self.requested,
            running=self.running,
            now=now,
            begin=begin,
            batch_s=self.batch_s,
            records=tuple(self.records),
            queues=tuple(self.queues),
            held_s=self.held[-1][1] - self.held[0][1] if self.held else None,
            queue_limit=self.queue_limit,
            is_ingested=self.arrivals is not None,
        )
