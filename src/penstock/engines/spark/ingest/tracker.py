"""Tracks the ingests of a run: the rows they read and their backlogs, which are offered load."""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.events import BehindEvent, CaughtUpEvent, Event
from penstock.engines.microbatch.arrivals import MAX_SPANS, Arrivals
from penstock.engines.microbatch.operator_tracker import BatchSource, OperatorTracker
from penstock.engines.port import IngestStatus
from penstock.engines.spark.ingest.backlog import (
    Backlog,
    FileCount,
    count_offsets,
    find_directory,
    read_backlog,
)
from penstock.engines.spark.io.batch_log import BatchLog, SteadyLog
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.steady_clock import SteadyClock

#: An ingest is behind if its backlog has grown for this long.
MIN_BEHIND_S = 10.0


@dataclass(slots=True, kw_only=True)
class IngestTracker:
    """State of one ingest in the driver. Times are wall-clock seconds."""

    name: str
    log: BatchSource
    checkpoint: Path
    #: Window for rates.
    window_s: float
    arrivals: Arrivals
    rows: int = 0
    #: Backlog by source; None if the source reports none.
    backlogs: dict[int, Backlog | None] = field(default_factory=dict)
    is_behind: bool = False
    #: (wall clock, rows so far), and (wall clock, backlog).
    _counts: deque[tuple[float, int]] = field(default_factory=deque)
    _waits: deque[tuple[float, float]] = field(default_factory=deque)
    _files: dict[int, FileCount] = field(default_factory=dict)
    #: By source: rows and offsets read so far, to convert offsets to rows.
    _read: dict[int, tuple[float, float]] = field(default_factory=dict)
    _progress_batch: int = -1

    def begin(self, rows: int) -> None:
        """Start with the rows of earlier starts; skips old records."""
        self.log.read_new()
        self.rows = rows

    def update(self, now: float) -> None:
        """Read new batch records."""
        for record in self.log.read_new():
            self.arrivals.assign_arrivals(record)
            self.rows += record.rows_in
        self._counts.append((now, self.rows))
        _drop_old(self._counts, now - self.window_s)

    def take_progress(self, progress: Mapping[str, Any] | None, now: float) -> list[Event]:
        """Read the progress that Spark reports; return events."""
        if progress is None:
            return []
        is_new = progress["batchId"] != self._progress_batch
        self._progress_batch = progress["batchId"]
        for number, source in enumerate(progress["sources"]):
            self.backlogs[number] = self._backlog(number, source, is_new)
        backlog = self.backlog
        if backlog is None:
            return []
        self._waits.append((now, backlog.amount))
        _drop_old(self._waits, now - max(self.window_s, MIN_BEHIND_S))
        return self._judge(backlog, now)

    @property
    def backlog(self) -> Backlog | None:
        """The backlog of all sources, in the unit of the first."""
        known = [backlog for backlog in self.backlogs.values() if backlog is not None]
        if not known:
            return None
        alike = [backlog for backlog in known if backlog.unit == known[0].unit]
        rows = [backlog.rows for backlog in known]
        total = sum(count for count in rows if count is not None)
        amount = sum(backlog.amount for backlog in alike)
        return Backlog(amount=amount, unit=known[0].unit, rows=None if None in rows else total)

    @property
    def rows_per_s(self) -> float | None:
        """Rows per second over the last window; None before the second update."""
        (start, before), (end, after) = (
            (self._counts[0], self._counts[-1]) if self._counts else ((0.0, 0), (0.0, 0))
        )
        return (after - before) / (end - start) if end > start else None

    def status(self) -> IngestStatus:
        """Return the status for journal and reports."""
        backlog, rate = self.backlog, self.rows_per_s
        return IngestStatus(
            rows=self.rows,
            rows_per_s=None if rate is None else round(rate, 3),
            backlog=backlog.amount if backlog else None,
            unit=backlog.unit if backlog else "",
            backlog_rows=round(backlog.rows) if backlog and backlog.rows is not None else None,
            is_behind=self.is_behind,
        )

    def _backlog(self, number: int, source: Mapping[str, Any], is_new: bool) -> Backlog | None:
        backlog, directory = read_backlog(source), find_directory(source)
        if backlog is None and directory is not None:
            return self._file_backlog(number, directory)
        read = count_offsets(source)
        rows, offsets = self._read.get(number, (0.0, 0.0))
        if is_new and read:
            rows, offsets = rows + source.get("numInputRows", 0), offsets + read
            self._read[number] = rows, offsets
        if backlog is None or backlog.unit != "offsets" or not (offsets or not backlog.amount):
            return backlog
        return replace(backlog, rows=backlog.amount * rows / offsets if offsets else 0.0)

    def _file_backlog(self, number: int, directory: Path) -> Backlog | None:
        log = self.checkpoint / "sources" / str(number)
        files = self._files.setdefault(number, FileCount(directory, log))
        waiting = files.count()
        if waiting is None:
            return None
        rows_per_file = self.rows / files.files_read if files.files_read else None
        known = None if rows_per_file is None else waiting * rows_per_file
        rows = known if waiting else 0.0
        return Backlog(amount=waiting, unit="files", rows=rows)

    def _judge(self, backlog: Backlog, now: float) -> list[Event]:
        """Return an event when the ingest falls behind, and when it has caught up."""
        since, first = self._waits[0]
        was, has_grown = self.is_behind, backlog.amount > first and now - since >= MIN_BEHIND_S
        if has_grown and min(amount for _, amount in self._waits) > 0:
            self.is_behind = True
        elif not backlog.amount:
            self.is_behind = False
        if self.is_behind == was:
            return []
        event_class = BehindEvent if self.is_behind else CaughtUpEvent
        amount, unit = backlog.amount, backlog.unit
        return [event_class(at=now, operator=self.name, backlog=amount, unit=unit)]


def _drop_old(samples: deque[Any], before: float) -> None:
    """Drop samples before a time, except the last of them."""
    while len(samples) > 1 and samples[1][0] <= before:
        samples.popleft()


class Ingests:
    """The trackers of all ingests of a pipeline, by name."""

    def __init__(
        self, pipeline: Pipeline, layout: RunLayout, window_s: float, clock: SteadyClock
    ) -> None:
        self._pipeline, self._layout = pipeline, layout
        self._arrivals = Arrivals()
        operators = pipeline.operators.values()
        self._topics = {op.name: str(op.writes) for op in operators if not op.reads}
        self.trackers = {
            name: IngestTracker(
                name=name,
                log=SteadyLog(BatchLog(layout.batches(name)), clock),
                checkpoint=layout.checkpoint(name),
                window_s=window_s,
                arrivals=self._arrivals,
            )
            for name in self._topics
        }
        filled = {topic for op in operators for topic in op.fills}
        #: Topics that producers or other processes write.
        self._others = {t for op in operators for t in op.reads if t not in filled}

    def begin(self, followed: Iterable[OperatorTracker]) -> None:
        """Start at the end of earlier batch records; all topics must exist."""
        if not self.trackers:
            return
        for name, tracker in self.trackers.items():
            tracker.begin(Topic.open(self._layout.topic(self._topics[name])).end)
        for topic in self._pipeline.topics:
            self._note_existing(topic)
        for operator in followed:
            operator.arrivals = self._arrivals

    def _note_existing(self, name: str) -> None:
        """Record existing rows as arrived at their commit times."""
        topic = Topic.open(self._layout.topic(name))
        if topic.commit_count <= MAX_SPANS:
            for commit in topic.oldest_first():
                self._arrivals.note(name, commit.end, commit.at)
        elif topic.newest is not None:
            self._arrivals.note(name, topic.end, topic.newest.at)

    def update(self, followed: Iterable[OperatorTracker], now: float) -> None:
        """Read new batch records of the ingests; call it before updating the operators."""
        if not self.trackers:
            return
        for tracker in self.trackers.values():
            tracker.update(now)
        for operator in followed:
            operator.outside = self._rows_outside(operator)
            for name in operator.topics.keys() & self._others:
                self._arrivals.note(name, operator.topics[name].end, now)

    def _rows_outside(self, operator: OperatorTracker) -> float:
        """Return the backlog, in rows, of the ingests that write the topics of an operator."""
        backlogs = [
            self.trackers[name].backlog
            for name, topic in self._topics.items()
            if topic in operator.topics
        ]
        return sum(backlog.rows or 0.0 for backlog in backlogs if backlog is not None)

    def take_progress(self, queries: Mapping[str, StreamingQuery], now: float) -> list[Event]:
        """Read the progress of the ingests from Spark; return events."""
        events: list[Event] = []
        for name, tracker in self.trackers.items():
            if name in queries:
                events += tracker.take_progress(queries[name].lastProgress, now)
        return events

    def status(self) -> Mapping[str, IngestStatus]:
        """Return the status of each ingest."""
        return FrozenDict({name: tracker.status() for name, tracker in self.trackers.items()})
