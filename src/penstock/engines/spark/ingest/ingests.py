"""All ingests of a run: what they bring is offered load, and what waits in front of them, too."""

from collections.abc import Iterable, Mapping

from pyspark.sql.streaming.query import StreamingQuery

from penstock.core.frozen_dict import FrozenDict
from penstock.engines.microbatch.arrivals import MAX_SPANS, Arrivals
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.port import Event, IngestStatus
from penstock.engines.spark.ingest.tracker import IngestTracker
from penstock.engines.spark.io.batch_log import BatchLog
from penstock.engines.spark.io.steady_log import SteadyLog
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.steady_clock import SteadyClock


class Ingests:
    """Trackers of the ingests of a pipeline, by name; empty if it has none."""

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
        #: Topics that producers and other processes fill.
        self._others = {t for op in operators for t in op.reads if t not in filled}

    def begin(self, followed: Iterable[OperatorTracker]) -> None:
        """Start where the records of an earlier start end; all topics are there by now."""
        if not self.trackers:
            return
        for name, tracker in self.trackers.items():
            tracker.begin(Topic.open(self._layout.topic(self._topics[name])).end)
        for topic in self._pipeline.topics:
            self._recall(topic)
        for operator in followed:
            operator.arrivals = self._arrivals

    def _recall(self, name: str) -> None:
        """Rows that are there already arrived when they were committed."""
        topic = Topic.open(self._layout.topic(name))
        if topic.commit_count <= MAX_SPANS:
            for commit in topic.oldest_first():
                self._arrivals.note(name, commit.end, commit.at)
        elif topic.newest is not None:
            self._arrivals.note(name, topic.end, topic.newest.at)

    def look(self, followed: Iterable[OperatorTracker], now: float) -> None:
        """Read what ingests brought; to be called before the operators behind them are."""
        if not self.trackers:
            return
        for tracker in self.trackers.values():
            tracker.look(now)
        for operator in followed:
            operator.outside = self._rows_outside(operator)
            for name in operator.topics.keys() & self._others:
                self._arrivals.note(name, operator.topics[name].end, now)

    def _rows_outside(self, operator: OperatorTracker) -> float:
        """Rows that wait in front of the ingests which fill the topics of an operator."""
        backlogs = [
            self.trackers[name].backlog
            for name, topic in self._topics.items()
            if topic in operator.topics
        ]
        return sum(backlog.rows or 0.0 for backlog in backlogs if backlog is not None)

    def take_progress(self, queries: Mapping[str, StreamingQuery], now: float) -> list[Event]:
        """Ask Spark how far the ingests are; return what is worth telling."""
        events: list[Event] = []
        for name, tracker in self.trackers.items():
            if name in queries and queries[name].isActive:
                events += tracker.take_progress(queries[name].lastProgress, now)
        return events

    def status(self) -> Mapping[str, IngestStatus]:
        """Return how each of them is."""
        return FrozenDict({name: one.status() for name, one in self.trackers.items()})
