"""Tracks one operator: its query, its batches, its backlog."""

from collections import deque
from dataclasses import dataclass, field
from typing import Protocol

from penstock.core.frozen_dict import FrozenDict
from penstock.core.vote_count import VoteCount
from penstock.engines.events import DroppedEvent, Event, LateEvent, RunningEvent
from penstock.engines.microbatch.arrivals import Arrivals
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_snapshot import OperatorWindow
from penstock.engines.microbatch.operator_votes import count_replicas, count_votes
from penstock.engines.microbatch.replica_vote import VotingRules


class BatchSource(Protocol):
    """The batch records of an operator."""

    @property
    def next(self) -> int:
        """The next batch without a record."""
        ...

    def read_new(self) -> list[BatchRecord]:
        """Return the records since the last call."""
        ...


class TopicPosition(Protocol):
    """The first and the last offset of a topic."""

    @property
    def first(self) -> int:
        """The offset of the oldest row."""
        ...

    @property
    def end(self) -> int:
        """The offset after the newest row."""
        ...

    def refresh(self) -> int:
        """Read new commits; return the end."""
        ...


@dataclass(slots=True, kw_only=True)
class OperatorTracker:
    """The state of one operator in the driver. Requested and running replicas may differ."""

    name: str
    upstream: tuple[str, ...]
    min_replicas: int = 1
    max_replicas: int
    log: BatchSource
    topics: dict[str, TopicPosition]
    batch_s: float
    #: Waiting rows above which upstream operators are held back; None without a limit.
    queue_limit: int | None = None
    requested: int
    running: int
    #: Wall clock of the request; None once it has taken effect.
    requested_at: float | None = None
    batches_since: int = 0
    #: Whether it is stopped for a change in progress.
    is_changing: bool = False
    position: dict[str, int] = field(default_factory=dict)
    records: deque[BatchRecord] = field(default_factory=deque)
    new_records: list[BatchRecord] = field(default_factory=list)
    queues: deque[tuple[float, float]] = field(default_factory=deque)
    #: (wall clock, rows that ever arrived).
    offers: deque[tuple[float, float]] = field(default_factory=deque)
    held: deque[tuple[float, float]] = field(default_factory=deque)
    rows_in: int = 0
    rows_dropped: int = 0
    #: Rows that arrived after the watermark, and the topic that keeps them.
    rows_late: int = 0
    late_to: str | None = None
    replica_s: float = 0.0
    #: Rows that wait outside of the pipeline, for the ingests that fill its topics.
    outside: float = 0.0
    #: Arrival times, if latency counts from them instead of event times.
    arrivals: Arrivals | None = None
    #: How its replicas decide alone; None: the loop requests replicas.
    voting: VotingRules | None = None

    @property
    def is_source(self) -> bool:
        """Whether no other operator feeds it."""
        return not self.upstream

    @property
    def offered(self) -> int:
        """Rows that ever arrived in its topics."""
        return sum(topic.end for topic in self.topics.values())

    @property
    def taken(self) -> int:
        """Rows that it has processed or dropped."""
        return sum(self.position.values())

    def begin(self) -> None:
        """Start where the records of an earlier start end."""
        for record in self.log.read_new():
            self._add_record(record)
            if record.totals:  # the records of the first batches may be gone
                self.rows_in = record.totals["rows_in"]
                self.rows_dropped = record.totals["dropped"]
                self.rows_late = record.totals["late"]
        self.clear_new()
        for name, topic in self.topics.items():
            self.position.setdefault(name, topic.first)

    def clear_new(self) -> None:
        """Clear the records since the last status."""
        self.new_records = []

    def request(self, replicas: int, now: float) -> None:
        """Record a request for another number of replicas."""
        self.requested, self.batches_since = replicas, 0
        self.requested_at = now if replicas != self.running else None

    def update(self, now: float, window_s: float, held_s: float | None = None) -> list[Event]:
        """Read new records and offsets; return events. All times are wall-clock times.

        `held_s` are the seconds during which back-pressure kept it from reading so far.
        """
        events: list[Event] = []
        for record in self.log.read_new():
            events += self._add_record(record)
        for topic in self.topics.values():
            topic.refresh()
        waiting = float(self.offered - self.taken)
        self.queues.append((now, waiting + self.outside))
        self.offers.append((now, self.offered + self.outside))
        if self.requested_at is not None and not waiting and not self.is_changing:
            # without rows there is no batch; the command holds for the next row
            events.append(self._report_running(now))
        self._drop_old(now - window_s)
        if held_s is not None:
            self.held.append((now, held_s))
        return events

    def _add_record(self, record: BatchRecord) -> list[Event]:
        self.position.update(record.end)
        if not record.tasks:  # a repartition of state, without rows
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
            events.append(self._report_running(record.planned_at))
        self.running = record.replicas
        if self.voting is not None:
            wanted = count_replicas(record, self.voting)
            if wanted != self.requested:
                self.request(wanted, record.committed_at)
        return events

    def count_late(self, rows: int, at: float) -> LateEvent:
        """Count rows that arrived after the watermark."""
        self.rows_late += rows
        total, late_topic = self.rows_late, self.late_to or ""
        return LateEvent(
            at=at, operator=self.name, records=rows, total=total, late_topic=late_topic
        )

    def _report_running(self, at: float) -> RunningEvent:
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

    def _drop_old(self, before: float) -> None:
        while len(self.records) > 1 and self.records[1].committed_at <= before:
            self.records.popleft()
        for samples in (self.queues, self.offers, self.held):
            while len(samples) > 1 and samples[1][0] <= before:
                samples.popleft()

    def window(self, now: float, begin: float) -> OperatorWindow:
        """Return the measurements of a window, for a snapshot."""
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
            votes=self._count_votes(),
        )

    def _count_votes(self) -> VoteCount | None:
        """Add up the votes since the last status; None if replicas do not vote."""
        if self.voting is None:
            return None
        return count_votes(self.new_records, self.voting, self.requested)
