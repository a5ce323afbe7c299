"""All ingests of a run: the rows they read, and their backlogs, are offered load."""

from collections.abc import Iterable, Mapping

from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.events import Event
from penstock.engines.microbatch.arrivals import MAX_SPANS, Arrivals
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.port import IngestStatus
from penstock.engines.spark.ingest.tracker import IngestTracker
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.steady_log import SteadyLog
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.steady_clock import SteadyClock


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
            if name in queries and queries[name].isActive:
                events += tracker.take_progress(queries[name].lastProgress, now)
        return events

    def status(self) -> Mapping[str, IngestStatus]:
        """Return the status of each ingest."""
        return FrozenDict({name: tracker.status() for name, tracker in self.trackers.items()})
