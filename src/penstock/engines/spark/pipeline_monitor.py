"""Monitors a running pipeline: builds snapshots, status and events from what it measures."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import Snapshot
from penstock.core.topology import Topology
from penstock.engines.events import Event
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.microbatch.replica_vote import VotingRules
from penstock.engines.microbatch.snapshot_builder import LOOK_S, build_snapshot, build_status
from penstock.engines.port import Status
from penstock.engines.spark.cluster.executors import Executors
from penstock.engines.spark.ingest.tracker import Ingests
from penstock.engines.spark.io.batch_log import BatchLog, SteadyLog
from penstock.engines.spark.native_state.rescaler import Rescaler
from penstock.engines.spark.operator_config import BatchTiming
from penstock.engines.spark.queries.batch_supervisor import BatchSupervisor
from penstock.engines.spark.queries.query_supervisor import QuerySupervisor
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.embedded.topic import Topic
from penstock.topics.steady_clock import SteadyClock

#: Seconds between two checks of whether queries are alive, which ask the JVM.
CHECK_QUERIES_S = 1.0


class PipelineMonitor:
    """What the driver measures. `track` each operator, `begin` the run, `update` it often."""

    def __init__(
        self,
        pipeline: Pipeline,
        topology: Topology,
        layout: RunLayout,
        timing: BatchTiming,
        *,
        query_supervisor: QuerySupervisor,
        rescaler: Rescaler,
        native: Iterable[str],
        initial: Mapping[str, int],
        executors: Executors | None,
        before_s: float,
        report: Callable[[Event], None],
        voting: Mapping[str, VotingRules],
    ) -> None:
        """`native` are the operators with Spark's own state; `before_s` is the age of the run.

        `voting` are the rules of operators whose replicas decide alone.
        """
        self._voting = voting
        self._pipeline, self._topology = pipeline, topology
        self._layout, self._timing = layout, timing
        self._query_supervisor, self._rescaler = query_supervisor, rescaler
        self._initial, self._executors, self._report = initial, executors, report
        self.trackers: dict[str, OperatorTracker] = {}
        self.batch_supervisor = BatchSupervisor(
            layout, pipeline.operators, self.trackers, query_supervisor, timing.batch_s
        )
        self._native = tuple(native)
        self._late_rows = {name: LateRowCounter() for name in self._native}
        #: The clock of all waits and measures; times of the wall clock are translated.
        self.clock = SteadyClock()
        self._ingests = Ingests(pipeline, layout, timing.window_s, self.clock)
        self._events: list[Event] = []
        self._before_s = before_s
        self._began_at = self.clock()
        #: Seconds that the loop has let pass since this start.
        self._advanced_s = 0.0
        self._updated_at = self._queries_checked_at = 0.0

    # --- begin

    def track(self, operator: Operator, replicas: int) -> None:
        """Track an operator from the records of an earlier start on."""
        self.trackers[operator.name] = make_tracker(
            self._layout,
            operator,
            self._topology.upstream[operator.name],
            replicas,
            self._timing,
            self.clock,
            self._voting.get(operator.name),
        )

    def begin_ingests(self) -> None:
        """Start to count what ingests read; all topics must exist."""
        self._ingests.begin(self.trackers.values())

    def begin(self) -> None:
        """Start the time of the run; batches can be slow from now on."""
        self.batch_supervisor.is_timing = True
        self._began_at = self._updated_at = self.clock()
        if self._executors is not None:
            self._executors.begin(self._began_at)

    # --- time

    def add_time(self, seconds: float) -> None:
        """Note that the loop lets so many seconds more pass."""
        self._advanced_s += seconds

    @property
    def remaining_s(self) -> float:
        """Seconds until the time that the loop lets pass is over."""
        return self._began_at + self._advanced_s - self.clock()

    @property
    def at(self) -> float:
        """Seconds since the run began; the loop's own count while that is accurate.

        Otherwise a cool-down would last one tick longer for the sake of a few milliseconds.
        """
        passed_s = self._updated_at - self._began_at
        is_in_time = abs(passed_s - self._advanced_s) < LOOK_S
        return self._before_s + (self._advanced_s if is_in_time else passed_s)

    def _second(self, at: float) -> float:
        """Return the second of the run at a time of the clock."""
        return round(max(0.0, self._before_s + at - self._began_at), 3)

    # --- measure

    def update(self, *, is_starting: bool = False) -> None:
        """Read what is new; replica-seconds count unless the run is still starting."""
        now = self.clock()
        passed_s = 0.0 if is_starting else now - self._updated_at
        self._updated_at = now
        while self._rescaler.events:
            self._add_reported(self._rescaler.events.popleft())
        self._ingests.update(self.trackers.values(), now)
        for tracker in self.trackers.values():
            tracker.is_changing = self._rescaler.is_busy(tracker.name)
            tracker.replica_s += tracker.running * passed_s
            held_s = read_backpressure_s(self._layout, self.trackers, tracker.name)
            self.add_events(tracker.update(now, self._timing.window_s, held_s))
        if self._executors is not None:
            self.add_events(self._executors.update(now))
            self.resize_executors(now)
        if now >= self._queries_checked_at + CHECK_QUERIES_S:
            self._queries_checked_at = now
            self._check_queries(now)

    def _check_queries(self, now: float) -> None:
        self.add_events(self._ingests.take_progress(self._query_supervisor.queries, now))
        self.add_events(self._count_late_rows(now))
        for event in self.batch_supervisor.update():
            self._add_reported(event)

    def _count_late_rows(self, now: float) -> Iterator[Event]:
        """Count rows that came after the watermark of operators with Spark's own state."""
        for name, counter in self._late_rows.items():
            query = self._query_supervisor.queries.get(name)
            if query is not None and (late := counter.read_new(query.recentProgress)):
                yield self.trackers[name].count_late(late, now)

    def resize_executors(self, now: float) -> None:
        """Let the number of executors follow the sum of requested replicas."""
        if self._executors is not None:
            replicas = sum(map(self.requested, self._pipeline.operators))
            self.add_events(self._executors.resize(replicas, now))

    def add_events(self, events: Iterable[Event]) -> None:
        """Add events with times of the clock to the next status."""
        self._events += [replace(event, at=self._second(event.at)) for event in events]

    def _add_reported(self, event: Event) -> None:
        """Add an event with a time of the wall clock, and report it at once."""
        self.add_events([replace(event, at=event.at + self.clock.shift_s)])
        self._report(self._events[-1])

    # --- results

    def build_snapshot(self) -> Snapshot:
        """Return what was measured over the last window."""
        snapshot = build_snapshot(
            self.trackers,
            now=self._updated_at,
            began=self._began_at,
            window_s=self._timing.window_s,
            at=self.at,
        )
        operators = dict(snapshot.operators)
        for name in self._native:
            rescale_s = self._rescaler.expected_s(name)
            operators[name] = replace(operators[name], rescale_s=rescale_s)
        return replace(snapshot, operators=FrozenDict(operators)) if self._native else snapshot

    def take_status(self) -> Status:
        """Return the status, with the events and batches since the last call."""
        operators = self._pipeline.operators.values()
        filled = {topic for op in operators if op.reads for topic in op.fills}
        events, self._events = tuple(sorted(self._events, key=lambda event: event.at)), []
        executors = self._executors
        status = build_status(
            self.trackers, self._topology, filled, at=self.at, second=self._second
        )
        for tracker in self.trackers.values():
            tracker.clear_new()
        return replace(
            status,
            executors=executors.alive if executors else None,
            executors_requested=executors.requested if executors else None,
            executor_s=round(executors.executor_s, 3) if executors else None,
            events=events,
            ingests=self._ingests.status(),
            queues=FrozenDict(self.queues),
            is_over=self._query_supervisor.is_over,
        )

    @property
    def queues(self) -> dict[str, int]:
        """Rows that wait for each operator, known from its topics before its first batch."""
        return {name: tracker.offered - tracker.taken for name, tracker in self.trackers.items()}

    def first_replicas(self, operator: Operator) -> int:
        """Return the replicas that an operator starts with."""
        return self._initial.get(operator.name, operator.options.replicas)

    def requested(self, name: str) -> int:
        """Return the requested replicas of an operator."""
        tracker = self.trackers.get(name)
        return tracker.requested if tracker else self.first_replicas(self._pipeline.operators[name])


class LateRowCounter:
    """Counts the rows that Spark has dropped as late in one query."""

    def __init__(self) -> None:
        self._batch = -1

    def read_new(self, progresses: Iterable[Mapping[str, Any]]) -> int:
        """Return the number of late rows in the batches since the last call.

        >>> counter = LateRowCounter()
        >>> first = {"batchId": 3, "stateOperators": [{"numRowsDroppedByWatermark": 2}]}
        >>> counter.read_new([first]), counter.read_new([first])
        (2, 0)
        """
        late = 0
        for progress in progresses:
            if progress["batchId"] > self._batch:
                self._batch = progress["batchId"]
                late += sum(
                    max(0, state["numRowsDroppedByWatermark"])
                    for state in progress["stateOperators"]
                )
        return late


def make_tracker(
    layout: RunLayout,
    operator: Operator,
    upstream: tuple[str, ...],
    replicas: int,
    timing: BatchTiming,
    clock: SteadyClock,
    voting: VotingRules | None = None,
) -> OperatorTracker:
    """Return a tracker that starts where the records of an earlier start end."""
    tracker = OperatorTracker(
        name=operator.name,
        upstream=upstream,
        min_replicas=operator.options.min_replicas,
        max_replicas=operator.options.max_replicas,
        log=SteadyLog(BatchLog(layout.batches(operator.name)), clock),
        topics={name: Topic.open(layout.topic(name)) for name in operator.reads},
        batch_s=timing.batch_s,
        queue_limit=operator.options.queue_limit,
        late_to=operator.late_to,
        requested=replicas,
        running=replicas,
        voting=voting,
    )
    tracker.begin()
    tracker.running = replicas
    return tracker


def read_backpressure_s(
    layout: RunLayout, trackers: Mapping[str, OperatorTracker], operator: str
) -> float | None:
    """Return for how long back-pressure kept an operator from reading; None without limits."""
    if all(tracker.queue_limit is None for tracker in trackers.values()):
        return None
    try:
        return float(layout.backpressure_file(operator).read_text())
    except FileNotFoundError:
        return 0.0
    except ValueError:  # it is being written
        return None
