"""The Spark engine behind the port: starts and stops a pipeline, and carries out plans."""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf

from pyspark.sql import SparkSession

from penstock.core.snapshot import Snapshot
from penstock.engines.events import Event
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.microbatch.replica_vote import VotingRules
from penstock.engines.microbatch.slice_assignment import read_moves
from penstock.engines.microbatch.snapshot_builder import LOOK_S
from penstock.engines.port import Capabilities, Plan, Status, check_plan
from penstock.engines.spark.batch_intervals import make_intervals
from penstock.engines.spark.cluster.executors import Executors
from penstock.engines.spark.drain_check import DrainCheck
from penstock.engines.spark.host_fleet import HostFleet
from penstock.engines.spark.io.call_marker import clear_marks
from penstock.engines.spark.io.commands import Command, read_command, write_command
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.native_state.rescaler import Rescaler
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.engines.spark.operator_groups import find_native, find_sliced, sort_operators
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
from penstock.errors import InputError
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
        voting: Mapping[str, VotingRules] | None = None,
    ) -> None:
        """`say` gets lines for people; `report` gets events of queries as they happen.

        `begin_s` are the seconds that the run had lasted before this start. With `available_now`,
        ingests end when they have read what was there at the start. With `voting`, the replicas of
        each operator decide alone, and `apply` is never called.
        """
        self._voting = voting or {}
        self._available_now = available_now
        self._spark, self.pipeline, self.layout, self._timing = spark, pipeline, layout, timing
        #: None where one process runs all replicas.
        self.executors = executors
        self.topology = pipeline.check_scaled()
        self._native, self._slices = find_native(pipeline), find_sliced(pipeline)
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
            voting=self._voting,
        )
        self._drain_check = DrainCheck(pipeline, layout, self._monitor, self._query_supervisor)
        #: Lines about what a start has repaired in Spark's checkpoints.
        self.repairs: list[str] = []
        self._snapshot: Snapshot | None = None
        self._wake = threading.Event()
        self._fleet = HostFleet(pipeline, layout)
        #: How closely batches follow each other; None where that is fixed.
        self._intervals = make_intervals(timing)
        #: By operator: the replica of slices that were moved, where they stay.
        self._pins: dict[str, dict[int, int]] = {}

    # --- begin and end

    def start(self, wait_for_others: Callable[[], object] = lambda: None) -> None:
        """Make topics and queries, and start them, last operator first.

        The run begins when all queries run and `wait_for_others` has returned.
        """
        self.repairs = reconcile(self.pipeline, self.layout)
        for text in self.repairs:
            self._say(text)
        make_topics(self.pipeline, self.layout)
        self._fleet.begin()
        for name in sort_operators(self.pipeline, self.topology):
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
        config = make_operator_config(self.pipeline, operator, self._timing, self._voting.get(name))
        replicas = self._monitor.first_replicas(operator)
        if name in self._native:
            replicas = self._rescaler.finish(name, replicas)
        if name in self._fleet:
            replicas = self._fleet.count_replicas(name)
        elif self.layout.order(name).is_file():  # slices stay where an earlier start moved them
            self._pins[name] = dict(read_command(self.layout, name).pins)
        write_command(self.layout, name, self._make_command(name, replicas))
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
        began = reported_at = time.monotonic()
        while True:
            self._monitor.update(is_starting=True)
            waiting = self._not_started()
            if self._query_supervisor.failed or not waiting:
                return
            now = time.monotonic()
            if now - began > MAX_START_S:
                self._say(f"the run begins while operators still start: {', '.join(waiting)}")
                return
            if now - reported_at > SAY_EVERY_S:
                reported_at = now
                self._say(format_waiting(waiting, now - began))
            time.sleep(LOOK_S)

    def _not_started(self) -> list[str]:
        """Return the operators that have had no batch, or whose source is still starting."""
        supervisor = self._query_supervisor
        without_batch = [name for name, tracker in self.trackers.items() if not tracker.records]
        late = {*without_batch, *supervisor.starting_names, *supervisor.restarting}
        return [name for name in sort_operators(self.pipeline, self.topology) if name in late]

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
            self._update()
        self._update()
        self._snapshot = None

    def _update(self) -> None:
        """Measure, and let batches follow each other as closely as they may."""
        self._monitor.update()
        intervals, batches = self._intervals, {n: t.log.next for n, t in self.trackers.items()}
        if intervals is not None and intervals.update(self._monitor.clock(), batches):
            for name in self.trackers.keys() - self._native:  # those may be on hold
                self._write_command(name)

    def observe(self) -> Snapshot:
        """Return what was measured over the last window."""
        if self._snapshot is None:
            snapshot = self._monitor.build_snapshot()
            if self._fleet:
                hosts = self._fleet.observe(snapshot.operators, self.trackers)
                snapshot = replace(snapshot, hosts=hosts, max_hosts=self._fleet.most)
            self._snapshot = snapshot
        return self._snapshot

    def apply(self, plan: Plan) -> None:
        """Request replicas and moves; they hold from each operator's next batch on."""
        maximums = {name: tracker.max_replicas for name, tracker in self.trackers.items()}
        minimums = {name: tracker.min_replicas for name, tracker in self.trackers.items()}
        check_plan(plan, maximums, self.capabilities, minimums)
        if self._fleet:
            self._move_between_hosts(plan)
            return
        moves = read_moves(plan.moves, self._slices)
        if self.executors is not None and plan.executors is not None:
            self.executors.keep(plan.executors)
        for name, replicas in plan.replicas.items():
            self.trackers[name].request(replicas, self._monitor.clock())
        for name, homes in moves.items():
            self._pins.setdefault(name, {}).update(homes)
        self._monitor.resize_executors(self._monitor.clock())  # before any source takes more rows
        for name in {**plan.replicas, **moves}:
            if name in self._native:
                self._rescaler.request(name, plan.replicas[name])
            else:
                self._write_command(name)

    def _move_between_hosts(self, plan: Plan) -> None:
        """Move slices between hosts; the replicas of their operators follow."""
        for name in plan.replicas:
            problem = f"{name} is on hosts" if name in self._fleet else f"{name} is not on hosts"
            raise InputError(f"replicas.{name}", problem, "this pipeline scales by moves of slices")
        now = self._monitor.clock()
        for name in sorted(self._fleet.move(plan.moves, now)):
            self.trackers[name].request(self._fleet.count_replicas(name), now)
            self._write_command(name)

    def _write_command(self, name: str, *, hold: bool = False) -> None:
        """Write the command of an operator again."""
        # the state of a native operator has as many partitions as replicas run, not as requested
        is_native = name in self._native
        replicas = self.trackers[name].running if is_native else self._monitor.requested(name)
        write_command(self.layout, name, self._make_command(name, replicas, hold=hold))

    def _make_command(self, name: str, replicas: int, *, hold: bool = False) -> Command:
        interval_s = self._intervals.interval_s if self._intervals is not None else None
        if name in self._fleet:
            return replace(self._fleet.make_command(name, hold=hold), interval_s=interval_s)
        pins = self._pins.get(name, {})
        return Command(replicas=replicas, hold=hold, pins=pins, interval_s=interval_s)

    def status(self) -> Status:
        """Return the status, with the events and batches since the last call."""
        self._monitor.add_events(self._fleet.report_change(self.trackers, self._monitor.clock()))
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
        return self._drain_check.is_input_read()

    @property
    def is_drained(self) -> bool:
        """Whether no row waits for a running operator or is on its way into a topic."""
        return self._drain_check.is_drained()
