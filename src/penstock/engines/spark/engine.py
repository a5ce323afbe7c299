"""The Spark engine behind the port: starts and stops a pipeline, and carries out plans."""

import threading
import time
from collections.abc import Callable, Mapping
from math import inf

from pyspark.sql import SparkSession

from penstock.core.snapshot import Snapshot
from penstock.engines.events import Event
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.microbatch.slice_assignment import read_moves
from penstock.engines.microbatch.snapshot_builder import LOOK_S
from penstock.engines.port import Capabilities, Plan, Status, check_plan
from penstock.engines.spark.cluster.executors import Executors
from penstock.engines.spark.io.call_marker import clear_marks
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.engines.spark.native_state.rescaler import Rescaler
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.engines.spark.pipeline_monitor import PipelineMonitor
from penstock.engines.spark.queries import failures
from penstock.engines.spark.queries.builder import make_query, make_topics
from penstock.engines.spark.queries.query_supervisor import (
    SAY_EVERY_S,
    QuerySupervisor,
    format_waiting,
)
from penstock.engines.spark.recovery.reconciliation import reconcile
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline

#: The run begins after this long, even if a query has had no batch.
MAX_START_S = 120.0


class SparkEngine:
    """Runs a checked pipeline in a run directory. `start` it, and `stop` it in the end."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        layout: RunLayout,
        *,
        timing: BatchTiming = BatchTiming(),  # noqa: B008  (immutable)
        initial: Mapping[str, int] | None = None,
        begin_s: float = 0.0,
        executors: Executors | None = None,
        retry_for_s: float = inf,
        say: Callable[[str], None] = lambda _: None,
        report: Callable[[Event], None] = lambda _: None,
        available_now: bool = False,
    ) -> None:
        """`say` gets lines for people; `report` gets events of queries as they happen.

        `begin_s` are the seconds that the run had lasted before this start. With `available_now`,
        ingests end when they have read what was there at the start.
        """
        self._available_now = available_now
        self._spark, self.pipeline, self.layout, self._timing = spark, pipeline, layout, timing
        #: None where one process runs all replicas.
        self.executors = executors
        self.topology = pipeline.check_scaled()
        self._say = say
        self._query_supervisor = QuerySupervisor(layout, retry_for_s, say=say)
        self._rescaler = Rescaler(spark, layout, self._query_supervisor)
        self._monitor = PipelineMonitor(
            pipeline,
            self.topology,
            layout,
            timing,
            query_supervisor=self._query_supervisor,
            rescaler=self._rescaler,
            native=self._native,
            initial=initial or {},
            executors=executors,
            before_s=begin_s,
            report=report,
        )
        #: Lines about what a start has repaired in Spark's checkpoints.
        self.repairs: list[str] = []
        self._snapshot: Snapshot | None = None
        self._wake = threading.Event()
        #: By operator: the last moves of slices, and their version, which only grows.
        self._moves: dict[str, tuple[Mapping[int, int], int]] = {}

    # --- begin and end

    def start(self, wait_for_others: Callable[[], object] = lambda: None) -> None:
        """Make topics and queries, and start them, last operator first.

        The run begins when all queries run and `wait_for_others` has returned.
        """
        self.repairs = reconcile(self.pipeline, self.layout)
        for text in self.repairs:
            self._say(text)
        make_topics(self.pipeline, self.layout)
        for name in self._sort_operators():
            self._prepare(self.pipeline.operators[name])
        recover(self.pipeline, self.layout)
        self._monitor.begin_ingests()
        self._query_supervisor.start()
        self._wait_for_first_batches()
        wait_for_others()
        self._monitor.begin()

    def _prepare(self, operator: Operator) -> None:
        """Make the query and the first command of an operator, and track it."""
        name = operator.name
        failures.clear(self.layout, name)
        clear_marks(self.layout, name)
        config = make_operator_config(self.pipeline, operator, self._timing)
        replicas = self._monitor.first_replicas(operator)
        if name in self._native:
            replicas = self._rescaler.finish(name, replicas)
        write_command(self.layout, name, Command(replicas=replicas))
        start = make_query(
            self._spark,
            self.pipeline,
            operator,
            self.layout,
            config,
            replicas,
            available_now=self._available_now,
        )
        self._query_supervisor.add(
            name,
            start,
            call_timeout_s=operator.options.call_timeout_s,
            keeps_letters=operator.options.on_error == "dead-letter",
        )
        if operator.scales:
            self._monitor.track(operator, replicas)

    def _wait_for_first_batches(self) -> None:
        """Wait for one batch of each query: Spark starts a new query with one, empty or not."""
        began = said = time.monotonic()
        while True:
            self._monitor.update(is_starting=True)
            waiting = self._not_started()
            if self._query_supervisor.failed or not waiting:
                return
            now = time.monotonic()
            if now - began > MAX_START_S:
                self._say(f"the run begins while operators still start: {', '.join(waiting)}")
                return
            if now - said > SAY_EVERY_S:
                said = now
                self._say(format_waiting(waiting, now - began))
            time.sleep(LOOK_S)

    def _not_started(self) -> list[str]:
        """Return the operators that have had no batch, or whose source is still starting."""
        supervisor = self._query_supervisor
        without_batch = [name for name, tracker in self.trackers.items() if not tracker.records]
        late = {*without_batch, *supervisor.starting_names, *supervisor.restarting}
        return [name for name in self._sort_operators() if name in late]

    def stop(self, patience_s: float = 60.0) -> None:
        """Hold every source, let running batches end, stop the queries."""
        self._rescaler.close(patience_s)
        for name in self.pipeline.operators:
            self._write_command(name, hold=True)
        self._query_supervisor.close()
        self._monitor.batch_supervisor.stop_queries(patience_s, self._say)
        self._monitor.update()

    def wake(self) -> None:
        """Let `advance` return at once."""
        self._wake.set()

    # --- the port

    @property
    def capabilities(self) -> Capabilities:
        """Replicas change and slices move between two batches; only Spark's own state pauses."""
        return Capabilities(
            moves_slices=bool(self._slices),
            has_executors=self.executors is not None,
            pauses=frozenset(self._native),
        )

    def advance(self, seconds: float) -> None:
        """Wait until so many seconds more have passed since the start; measure meanwhile."""
        self._monitor.add_time(seconds)
        while (remaining_s := self._monitor.remaining_s) > 0:
            if self._wake.wait(min(remaining_s, LOOK_S)):
                break
            self._monitor.update()
        self._monitor.update()
        self._snapshot = None

    def observe(self) -> Snapshot:
        """Return what was measured over the last window."""
        if self._snapshot is None:
            self._snapshot = self._monitor.build_snapshot()
        return self._snapshot

    def apply(self, plan: Plan) -> None:
        """Request replicas; they run from each operator's next batch on."""
        maximums = {name: tracker.max_replicas for name, tracker in self.trackers.items()}
        minimums = {name: tracker.min_replicas for name, tracker in self.trackers.items()}
        check_plan(plan, maximums, self.capabilities, minimums)
        moves = read_moves(plan.moves, self._slices)
        if self.executors is not None and plan.executors is not None:
            self.executors.keep(plan.executors)
        for name, replicas in plan.replicas.items():
            self.trackers[name].request(replicas, self._monitor.clock())
        for name, homes in moves.items():
            self._moves[name] = (homes, time.time_ns())
        self._monitor.resize_executors(self._monitor.clock())  # before any source takes more rows
        for name in {**plan.replicas, **moves}:
            if name in self._native:
                self._rescaler.request(name, plan.replicas[name])
            else:
                self._write_command(name)

    def _write_command(self, name: str, *, hold: bool = False) -> None:
        """Write the command of an operator again; its source ignores moves of an old version."""
        moves, version = self._moves.get(name, ({}, 0))
        # the state of a native operator has as many partitions as replicas run, not as requested
        is_native = name in self._native
        replicas = self.trackers[name].running if is_native else self._monitor.requested(name)
        write_command(
            self.layout, name, Command(replicas=replicas, hold=hold, moves=moves, version=version)
        )

    def status(self) -> Status:
        """Return the status, with the events and batches since the last call."""
        return self._monitor.take_status()

    # --- for people

    @property
    def trackers(self) -> Mapping[str, OperatorTracker]:
        """The trackers of the operators that have replicas."""
        return self._monitor.trackers

    @property
    def queues(self) -> dict[str, int]:
        """Rows that wait for each operator."""
        return self._monitor.queues

    @property
    def at(self) -> float:
        """Seconds since the run began."""
        return self._monitor.at

    @property
    def operator_errors(self) -> Mapping[str, str]:
        """Operators that stopped, with the reason."""
        return dict(self._query_supervisor.failed)

    @property
    def is_input_read(self) -> bool:
        """Whether all ingests have read what was there at the start, and no query restarts."""
        supervisor, operators = self._query_supervisor, self.pipeline.operators.values()
        ingests = [operator.name for operator in operators if not operator.reads]
        is_read = all(not supervisor.queries[name].isActive for name in ingests)
        return is_read and not supervisor.restarting

    @property
    def is_drained(self) -> bool:
        """Whether no row waits for a running operator or is on its way into a topic."""
        before = self._count_waiting()
        # rows with a batch record count as taken, though they may not be published yet
        is_quiet = all(map(self._monitor.batch_supervisor.is_quiet, self._query_supervisor.queries))
        return is_quiet and before == self._count_waiting() and all(not rows for _, rows in before)

    def _count_waiting(self) -> list[tuple[int, int]]:
        """Return, by running operator, the rows that ever came and those of them that wait."""
        self._monitor.update()
        failed = self._query_supervisor.failed
        running = [tracker for name, tracker in self.trackers.items() if name not in failed]
        return [(tracker.offered, tracker.offered - tracker.taken) for tracker in running]

    # --- operators

    @property
    def _native(self) -> list[str]:
        """Operators with Spark's own state."""
        return [
            name
            for name, operator in self.pipeline.operators.items()
            if find_spark_kind(operator.kind).has_spark_state
        ]

    @property
    def _slices(self) -> dict[str, int]:
        """The number of slices of each operator that has them."""
        return {
            name: slices
            for name, operator in self.pipeline.operators.items()
            if (slices := find_spark_kind(operator.kind).slices(operator))
        }

    def _sort_operators(self) -> list[str]:
        """Return the operators in the order in which records pass them, ingests first."""
        others = [op for op in self.pipeline.operators.values() if not op.scales]
        return [
            *(operator.name for operator in others if not operator.reads),
            *self.topology.order,
            *(operator.name for operator in others if operator.reads),
        ]
