"""Tracks one query of another application: its sources, its batches, and the effect of changes."""

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from typing import Any

from penstock.engines.attached.batch_records import build_record
from penstock.engines.attached.file_backlog import FileBacklog, FileCounter
from penstock.engines.attached.progress import QueryProgress, StateProgress, parse_progress
from penstock.engines.attached.source_position import SourcePosition
from penstock.engines.attached.task_facts import TaskFacts
from penstock.engines.events import Event
from penstock.engines.microbatch.arrivals import Arrivals
from penstock.engines.microbatch.batch_record import BatchRecord
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.query_events import PARTITIONS, ExecutorEffectEvent

#: Batches after which a change of executors is judged: the first ones run on cold executors.
JUDGED_AFTER = 10
#: A change is judged after this long even if batches are slow.
MAX_JUDGE_S = 120.0
#: So many long batches are enough if together they have worked for so many seconds: longer than
#: executors are cold. A query that cannot keep up must not stay unmeasured for ten batches.
_LONG_BATCHES, _LONG_WORK_S = 2, 40.0
#: Batches that stay in the window when a change has been judged, and that are compared.
_COMPARED = 3
#: Batches for which figures beside the records are kept.
_KEPT = 20


class ProgressLog:
    """The batch records of a query that were not read yet."""

    def __init__(self) -> None:
        self._new: list[BatchRecord] = []
        self.next = 0

    def add(self, record: BatchRecord) -> None:
        """Add a record."""
        self._new.append(record)
        self.next = record.batch + 1

    def read_new(self) -> list[BatchRecord]:
        """Return the records since the last call."""
        records, self._new = self._new, []
        return records


@dataclass(slots=True)
class Probation:
    """A change of executors whose effect is not known yet."""

    #: Executors of the application before the change, and since then.
    before: int
    executors: int
    began: float
    #: Rows/s of batches before the change.
    speed_before: float | None
    batches: int = 0
    #: Seconds in which these batches worked.
    work_s: float = 0.0

    def is_over(self, now: float) -> bool:
        """Whether the change can be judged."""
        is_long = self.batches >= _LONG_BATCHES and self.work_s >= _LONG_WORK_S
        return self.batches >= JUDGED_AFTER or is_long or now - self.began >= MAX_JUDGE_S


@dataclass(slots=True, kw_only=True)
class QueryTracker:
    """One query since it is tracked. Times are wall-clock seconds."""

    name: str
    window_s: float
    #: The length that batches may have: the trigger interval, or a share of the freshness.
    batch_s: float
    min_executors: int = 1
    max_executors: int
    #: Executors that are the query's share, and task slots of each.
    executors: int
    cores: int = 1
    #: Task slots of the application, where a replica is a partition; None where it is an executor.
    slots: int | None = None
    #: Makes a counter of files for the source with this number and description.
    make_counter: Callable[[int, str], FileCounter | None] = lambda _number, _text: None
    sources: list[SourcePosition] = field(default_factory=list)
    state: StateProgress | None = None
    #: The last triggers, and what tasks did in the last batches for which that is known.
    progress: deque[QueryProgress] = field(default_factory=lambda: deque(maxlen=_KEPT))
    facts: deque[TaskFacts] = field(default_factory=lambda: deque(maxlen=_KEPT))
    probation: Probation | None = None
    operator: OperatorTracker = field(init=False)
    _log: ProgressLog = field(default_factory=ProgressLog)
    _arrivals: Arrivals = field(default_factory=Arrivals)
    _last_at: float = 0.0
    _row_cpu_s: float | None = None

    def __post_init__(self) -> None:
        self.operator = OperatorTracker(
            name=self.name,
            upstream=(),
            min_replicas=self.min_executors,
            max_replicas=self.max_executors,
            log=self._log,
            topics={},
            batch_s=self.batch_s,
            requested=self.executors,
            running=self.executors,
            arrivals=self._arrivals,
        )

    # --- what Spark reports

    def take(self, report: Mapping[str, Any], facts: TaskFacts | None = None) -> bool:
        """Read a report; False if it is not new, cannot be read or has no batch."""
        progress = parse_progress(report)
        if progress is None or progress.started_at <= self._last_at:
            return False
        self._last_at = progress.started_at
        self.state = progress.state or self.state
        is_batch = progress.work_s is not None
        ranges = self._take_sources(progress, is_batch=is_batch)
        record = build_record(
            progress,
            ranges,
            self.executors,
            waiting=self._count_waiting(ranges),
            cpu_s=self._estimate_cpu_s(ranges, facts),
        )
        if record is None:
            return False
        self.progress.append(progress)
        if facts is not None:
            self.facts.append(facts)
        if self.probation is not None:
            self.probation.batches += 1
            self.probation.work_s += progress.work_s or 0.0
        self._log.add(record)
        return True

    def _take_sources(
        self, progress: QueryProgress, *, is_batch: bool
    ) -> dict[str, tuple[int, int]]:
        ranges = {}
        for number, source in enumerate(progress.sources):
            if number == len(self.sources):
                self._add_source(number, source.description)
            position = self.sources[number]
            ranges[position.name] = position.take(source, progress.started_at, is_batch=is_batch)
        return ranges

    def _add_source(self, number: int, description: str) -> None:
        counter, window_s = self.make_counter(number, description), self.window_s
        files = FileBacklog(list_files=counter, window_s=window_s) if counter is not None else None
        position = SourcePosition(
            name=f"{self.name}/{number}",
            window_s=window_s,
            files=files,
            arrivals=self._arrivals,
        )
        self.sources.append(position)
        self.operator.topics[position.name] = position
        self.operator.position[position.name] = 0

    def _estimate_cpu_s(
        self, ranges: Mapping[str, tuple[int, int]], facts: TaskFacts | None
    ) -> float | None:
        """Return the processor time of a batch on one executor, by rows; tasks are read rarely."""
        rows = sum(end - start for start, end in ranges.values())
        if facts is not None and rows:
            self._row_cpu_s = facts.cpu_s / rows
        if self._row_cpu_s is None:
            return None
        return self._row_cpu_s * rows / (self.cores * max(1, self.executors))

    def _count_waiting(self, ranges: Mapping[str, tuple[int, int]]) -> int | None:
        """Return the rows that waited when the batch was planned, including its own."""
        if not self.has_backlog or len(ranges) < len(self.sources):
            return None
        return sum(source.end - ranges[source.name][0] for source in self.sources)

    # --- between reports

    def update(self, now: float, *, is_working: bool) -> list[Event]:
        """Read new records; rows keep arriving while the query works or its next trigger is due."""
        is_steady = self._is_steady(now, is_working=is_working)
        for source in self.sources:
            source.extrapolate(now if is_steady else self._last_at)
        # silence must not push the last measures out of the window
        silent_s = self.silent_s(now) if is_working else 0.0
        look_back_s = self.look_back_s(now, is_working=is_working)
        events = self.operator.update(now, look_back_s + silent_s)
        return [*events, *self._judge(now)]

    def _is_steady(self, now: float, *, is_working: bool) -> bool:
        """Whether a batch runs, or the next one is due soon."""
        return is_working or now - self._last_at <= 2 * self.usual_interval_s

    def look_back_s(self, now: float, *, is_working: bool) -> float:
        """Return the seconds that a snapshot looks back on: some batches, however long they are.

        A query in the middle of a long batch is not idle, although no batch ended lately.
        """
        if not self._is_steady(now, is_working=is_working):
            return self.window_s
        return max(self.window_s, _COMPARED * self.usual_interval_s)

    @property
    def usual_interval_s(self) -> float:
        """Seconds from the begin of a batch to the begin of the next one."""
        times = [progress.started_at for progress in self.progress]
        gaps = [later - earlier for earlier, later in pairwise(times)]
        return median(gaps) if gaps else self.batch_s

    @property
    def usual_batch_s(self) -> float | None:
        """Seconds that a batch usually takes; None before the first."""
        times = [progress.duration_s for progress in self.progress]
        return median(times) if times else None

    @property
    def trigger_delay_s(self) -> float:
        """Seconds by which a batch usually takes longer than it may."""
        return max(0.0, (self.usual_batch_s or 0.0) - self.batch_s)

    def silent_s(self, now: float) -> float:
        """Seconds by which the running batch is longer than usual; 0 if it is not much longer."""
        if not self.progress:
            return 0.0
        since_s = now - self.progress[-1].ended_at
        return since_s if since_s > 2 * ((self.usual_batch_s or 0.0) + self.batch_s) else 0.0

    @property
    def has_backlog(self) -> bool:
        """Whether all sources report what waits."""
        return bool(self.sources) and all(source.has_backlog for source in self.sources)

    @property
    def waiting(self) -> int:
        """Rows that waited when the last batch had been planned."""
        return sum(source.waiting for source in self.sources)

    @property
    def offered_rate(self) -> float | None:
        """Rows/s that arrive, by the offsets; None before the second report."""
        rates = [source.rate for source in self.sources]
        known = [rate for rate in rates if rate is not None]
        return sum(known) if known and len(known) == len(rates) else None

    # --- changes

    @property
    def unit(self) -> str | None:
        """What a replica is, if it is no executor."""
        return None if self.slots is None else PARTITIONS

    def share(self, executors: int) -> None:
        """Set the executors that are the query's share."""
        self.executors = executors

    def begin_probation(self, before: int, executors: int, now: float) -> None:
        """Note that the application has another number of executors, to be judged."""
        self.probation = Probation(before, executors, now, self._measure_speed(_KEPT))

    def _judge(self, now: float) -> list[Event]:
        """Report the effect of a change once enough batches have run."""
        probation = self.probation
        if probation is None or not probation.is_over(now):
            return []
        self.probation = None
        while len(self.operator.records) > _COMPARED:  # those before ran on cold executors
            self.operator.records.popleft()
        after = self._measure_speed(min(_COMPARED, probation.batches))
        if probation.speed_before is None or after is None:
            return []
        return [
            ExecutorEffectEvent(
                at=now,
                operator=self.name,
                before=probation.before,
                executors=probation.executors,
                speed_before=round(probation.speed_before, 1),
                speed=round(after, 1),
                batches=probation.batches,
                unit=self.unit,
            )
        ]

    def _measure_speed(self, batches: int) -> float | None:
        """Return rows/s while the last batches worked."""
        records = list(self.operator.records)[-batches:] if batches else []
        rows = sum(record.rows_in for record in records)
        work_s = sum(record.tasks[0].busy_s for record in records)
        return rows / work_s if rows and work_s else None
