"""Whether every row has passed the pipeline."""

from penstock.engines.spark.pipeline_monitor import PipelineMonitor
from penstock.engines.spark.queries.query_supervisor import QuerySupervisor
from penstock.engines.spark.recovery.checkpoints import read_committed_ends
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic


class DrainCheck:
    """Counts the rows that still wait, for operators with replicas and for each egress."""

    def __init__(
        self,
        pipeline: Pipeline,
        layout: RunLayout,
        monitor: PipelineMonitor,
        query_supervisor: QuerySupervisor,
    ) -> None:
        self._operators, self._layout = pipeline.operators.values(), layout
        self._monitor, self._query_supervisor = monitor, query_supervisor
        #: Topics that an egress reads, opened when its rows are counted first.
        self._topics: dict[str, Topic] = {}

    def is_input_read(self) -> bool:
        """Whether all ingests have read what was there at the start, and no query restarts."""
        supervisor = self._query_supervisor
        ingests = [operator.name for operator in self._operators if not operator.reads]
        is_read = all(not supervisor.queries[name].isActive for name in ingests)
        return is_read and not supervisor.restarting

    def is_drained(self) -> bool:
        """Whether no row waits for a running operator or is on its way into a topic."""
        before = self._count_waiting()
        # rows with a batch record count as taken, though they may not be published yet
        is_quiet = all(map(self._monitor.batch_supervisor.is_quiet, self._query_supervisor.queries))
        is_unchanged = before == self._count_waiting()
        return is_quiet and is_unchanged and all(not rows for _, rows in before)

    def _count_waiting(self) -> list[tuple[int, int]]:
        """Return, by running operator, the rows that ever came and those of them that wait."""
        self._monitor.update()
        trackers, failed = self._monitor.trackers, self._query_supervisor.failed
        counts = []
        for operator in self._operators:
            if operator.name in failed:
                continue
            if (tracker := trackers.get(operator.name)) is not None:
                counts.append((tracker.offered, tracker.offered - tracker.taken))
            elif operator.reads:
                counts.append(self._count_unwritten(operator))
        return counts

    def _count_unwritten(self, operator: Operator) -> tuple[int, int]:
        """Return the rows that ever came for an egress, and those without a committed batch."""
        topics = {name: self._open_topic(name) for name in operator.reads}
        written = read_committed_ends(self._layout.checkpoint(operator.name))
        ends = {name: topic.refresh() for name, topic in topics.items()}
        waiting = sum(ends[name] - written.get(name, topics[name].first) for name in ends)
        return sum(ends.values()), waiting

    def _open_topic(self, name: str) -> Topic:
        if name not in self._topics:
            self._topics[name] = Topic.open(self._layout.topic(name))
        return self._topics[name]
