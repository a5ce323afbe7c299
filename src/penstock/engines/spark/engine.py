"""The Spark engine behind the port: a pipeline that runs for real."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from math import inf

from pyspark.sql import SparkSession

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import Snapshot
from penstock.engines.events import Event
from penstock.engines.microbatch.operator_tracker import OperatorTracker
from penstock.engines.microbatch.slice_assignment import read_moves
from penstock.engines.microbatch.snapshot_builder import LOOK_S, build_snapshot, build_status
from penstock.engines.port import Capabilities, Plan, Status, check_plan
from penstock.engines.spark.cluster.executors import Executors
from penstock.engines.spark.ingest.tracker import Ingests
from penstock.engines.spark.io.call_marker import clear_marks
from penstock.engines.spark.io.commands import Command, write_command
from penstock.engines.spark.io.publication import recover
from penstock.engines.spark.kinds.kind import find_spark_kind
from penstock.engines.spark.native_state.progress import LateRowCounter
from penstock.engines.spark.native_state.rescaler import Rescaler
from penstock.engines.spark.operator_config import BatchTiming, make_operator_config
from penstock.engines.spark.operator_trackers import backpressure_s, make_tracker
from penstock.engines.spark.queries import failures
from penstock.engines.spark.queries.batch_supervisor import BatchSupervisor
from penstock.engines.spark.queries.builder import make_query, make_topics
from penstock.engines.spark.queries.query_supervisor import (
    SAY_EVERY_S,
    QuerySupervisor,
    waiting_text,
)
from penstock.engines.spark.recovery.reconciliation import reconcile
from penstock.engines.spark.run_layout import RunLayout
from penstock.pipelines.operator import Operator
from penstock.pipelines.pipeline import Pipeline
from penstock.topics.steady_clock import SteadyClock

#: Seconds between two questions to Spark whether queries live.
WATCH_S = 1.0
#: A query that has had no batch after this long is not waited for.
START_S = 120.0


class SparkEngine:
    """Runs a checked pipeline in a run directory. `start` it, and `stop` it in the end."""

    def __init__(
        self,
        spark: SparkSession,
        pipeline: Pipeline,
        layout: RunLayout,
        *,
        pace: BatchTiming = BatchTiming(),  # noqa: B008  (immutable)
        initial: Mapping[str, int] | None = None,
        begin_s: float = 0.0,
        executors: Executors | None = None,
        retry_for_s: float = inf,
        say: Callable[[str], None] = lambda _: None,
        report: Callable[[Event], None] = lambda _: None,
    ) -> None:
        """`say` is told what is waited for, `report` at once what happens to operators."""
        self._spark, self.pipeline, self.layout, self._pace = spark, pipeline, layout, pace
        self._initial = initial or {}
        #: None where there is one process for all replicas.
        self.executors = executors
        self.topology = pipeline.check_scaled()
        self._followed: dict[str, OperatorTracker] = {}
        self._lateness = {name: LateRowCounter() for name in self._native}
        #: Waits and measures by this clock; what others stamp by the wall clock is translated.
        self._clock = SteadyClock()
        self._ingests = Ingests(pipeline, layout, pace.window_s, self._clock)
        self._say, self._report = say, report
        self._starter = QuerySupervisor(layout, retry_for_s, say=say)
        self._supervisor = BatchSupervisor(
            layout, pipeline.operators, self._followed, self._starter, pace.batch_s
        )
        self._rescaler = Rescaler(spark, layout, self._starter)
        #: What a start has repaired in Spark's checkpoints, in words.
        self.repairs: list[str] = []
        self._events: list[Event] = []
        #: Seconds that the run had lasted before this start.
        self._before_s = begin_s
        self._began = self._clock()
        self._at = 0.0
        self._looked = self._watched = 0.0
        self._snapshot: Snapshot | None = None
        self._wake = threading.Event()
        #: By operator: the last moves of slices, and their version, which only grows.
        self._moves: dict[str, tuple[Mapping[int, int], int]] = {}

    # --- begin and end

    def start(self, wait_for_others: Callable[[], object] = lambda: None) -> None:
        """Make topics and queries, and start them, last operator first.

        The run begins when they are there and what else starts beside them is ready, too.
        """
        self.repairs = reconcile(self.pipeline, self.layout)
        for text in self.repairs:
            self._say(text)
        make_topics(self.pipeline, self.layout)
        for name in self._in_order():
            operator = self.pipeline.operators[name]
            failures.clear(self.layout, name)
            clear_marks(self.layout, name)
            config = make_operator_config(self.pipeline, operator, self._pace)
            replicas = self._first_replicas(operator)
            if name in self._native:
                replicas = self._rescaler.finish(name, replicas)
            write_command(self.layout, name, Command(replicas=replicas))
            start = make_query(self._spark, self.pipeline, operator, self.layout, config, replicas)
            self._starter.add(
                name,
                start,
                call_timeout_s=operator.options.call_timeout_s,
                keeps_letters=operator.options.on_error == "dead-letter",
            )
            if operator.scales:
                upstream = self.topology.upstream[name]
                self._followed[name] = make_tracker(
                    self.layout, operator, upstream, replicas, self._pace, self._clock
                )
        recover(self.pipeline, self.layout)
        self._ingests.begin(self._followed.values())
        self._starter.start()
        self._wait_for_first_batches()
        wait_for_others()
        self._supervisor.is_timing = True
        self._began = self._looked = self._clock()
        if self.executors is not None:
            self.executors.begin(self._began)

    def _wait_for_first_batches(self) -> None:
        """Spark begins a new query with a batch, empty or not; with it everything is there."""
        began = said = time.monotonic()
        while True:
            self._looked = self._clock()
            self._look()
            waiting = self._not_started()
            if self._starter.failed or not waiting:
                return
            now = time.monotonic()
            if now - began > START_S:
                self._say(f"going on before all operators run: {', '.join(waiting)} still starting")
                return
            if now - said > SAY_EVERY_S:
                said = now
                self._say(waiting_text(waiting, now - began))
            time.sleep(LOOK_S)

    def _not_started(self) -> list[str]:
        """Operators that have had no batch, or whose source is not there yet."""
        unseen = [name for name, one in self._followed.items() if not one.records]
        late = {*unseen, *self._starter.beginning_names, *self._starter.restarting}
        return [name for name in self._in_order() if name in late]

    def stop(self, patience_s: float = 60.0) -> None:
        """Hold every source, let running batches end, stop the queries."""
        self._rescaler.close(patience_s)
        for name in self.pipeline.operators:
            self._give(name, hold=True)
        self._starter.close()
        self._supervisor.stop_queries(patience_s, self._say)
        self._look()

    def wake(self) -> None:
        """Let `advance` return at once."""
        self._wake.set()

    # --- the port

    @property
    def capabilities(self) -> Capabilities:
        """Replicas change and slices move between two batches; only Spark's own state pauses."""
        return Capabilities(
            moves_slices=bool(self._sliced),
            has_executors=self.executors is not None,
            pauses=frozenset(self._native),
        )

    @property
    def _native(self) -> list[str]:
        """Operators with state of Spark's own."""
        return [
            name
            for name, operator in self.pipeline.operators.items()
            if find_spark_kind(operator.kind).has_spark_state
        ]

    @property
    def _sliced(self) -> dict[str, int]:
        """Operators with state, and how many slices they have."""
        return {
            name: slices
            for name, operator in self.pipeline.operators.items()
            if (slices := find_spark_kind(operator.kind).slices(operator))
        }

    def advance(self, seconds: float) -> None:
        """Wait until so many seconds more have passed since the start; look on meanwhile."""
        self._at += seconds
        while (left := self._began + self._at - self._clock()) > 0:
            if self._wake.wait(min(left, LOOK_S)):
                break
            self._look()
        self._look()
        self._snapshot = None

    def observe(self) -> Snapshot:
        """What was measured over the last window."""
        if self._snapshot is None:
            self._snapshot = self._observe()
        return self._snapshot

    def _observe(self) -> Snapshot:
        seen = build_snapshot(
            self._followed,
            now=self._looked,
            began=self._began,
            window_s=self._pace.window_s,
            at=self.at,
        )
        operators = dict(seen.operators)
        for name in self._native:
            rescale_s = self._rescaler.expected_s(name)
            operators[name] = replace(operators[name], rescale_s=rescale_s)
        return replace(seen, operators=FrozenDict(operators)) if self._native else seen

    def apply(self, plan: Plan) -> None:
        """Order replicas; they run from each operator's next batch on."""
        most = {name: one.max_replicas for name, one in self._followed.items()}
        least = {name: one.min_replicas for name, one in self._followed.items()}
        check_plan(plan, most, self.capabilities, least)
        moves = read_moves(plan.moves, self._sliced)
        if self.executors is not None and plan.executors is not None:
            self.executors.keep(plan.executors)
        for name, replicas in plan.replicas.items():
            self._followed[name].request(replicas, self._clock())
        for name, homes in moves.items():
            self._moves[name] = (homes, time.time_ns())
        self._follow_replicas(self._clock())  # bought before any source takes more
        for name in {**plan.replicas, **moves}:
            if name in self._native:
                self._rescaler.request(name, plan.replicas[name])
            else:
                self._give(name)

    def _give(self, name: str, *, hold: bool = False) -> None:
        """Write the command of an operator again; moves of an old version are not repeated."""
        moves, version = self._moves.get(name, ({}, 0))
        # the state of a native operator is in as many parts as run, whatever is asked for
        replicas = self._running(name) if name in self._native else self._requested(name)
        write_command(
            self.layout, name, Command(replicas=replicas, hold=hold, moves=moves, version=version)
        )

    def status(self) -> Status:
        """Where things stand, and what happened since the last call."""
        operators = self.pipeline.operators.values()
        filled = {topic for op in operators if op.reads for topic in op.fills}
        events, self._events = tuple(sorted(self._events, key=lambda event: event.at)), []
        level = self.executors
        status = build_status(
            self._followed, self.topology, filled, at=self.at, second=self._second
        )
        for operator in self._followed.values():
            operator.clear_new()
        return replace(
            status,
            executors=level.alive if level else None,
            executors_requested=level.requested if level else None,
            executor_s=round(level.executor_s, 3) if level else None,
            events=events,
            ingests=self._ingests.status(),
            queues=FrozenDict(self.queues),
            is_over=self._starter.is_over,
        )

    # --- for people

    @property
    def queues(self) -> dict[str, int]:
        """Rows that wait for each operator, known from its topics before it has had a batch."""
        return {name: one.offered - one.taken for name, one in self._followed.items()}

    @property
    def at(self) -> float:
        """Seconds since the run began; as the harness counts them while it is in time.

        A cool-down would otherwise last a tick longer for a few milliseconds.
        """
        passed_s = self._looked - self._began
        is_in_time = abs(passed_s - self._at) < LOOK_S
        return self._before_s + (self._at if is_in_time else passed_s)

    @property
    def operator_errors(self) -> Mapping[str, str]:
        """Operators that stopped, and why."""
        return dict(self._starter.failed)

    @property
    def is_drained(self) -> bool:
        """Whether nothing waits for an operator that lives, or is on its way into a topic."""
        before = self._waiting()
        # what has a record counts as taken, though its rows may not be published yet
        is_quiet = all(map(self._supervisor.is_quiet, self._starter.queries))
        return is_quiet and before == self._waiting() and all(not rows for _, rows in before)

    def _waiting(self) -> list[tuple[int, int]]:
        """Rows that ever came to each operator, and those of them that wait."""
        self._look()
        alive = [one for name, one in self._followed.items() if name not in self._starter.failed]
        return [(one.offered, one.offered - one.taken) for one in alive]

    # --- inside

    def _look(self) -> None:
        now = self._clock()
        passed_s, self._looked = now - self._looked, now
        while self._rescaler.events:
            self._note(self._rescaler.events.popleft())
        self._ingests.update(self._followed.values(), now)
        for one in self._followed.values():
            one.is_changing = self._rescaler.is_busy(one.name)
            one.replica_s += one.running * passed_s
            new = one.update(
                now, self._pace.window_s, backpressure_s(self.layout, self._followed, one.name)
            )
            self._events += [self._in_run_time(event) for event in new]
        if self.executors is not None:
            self._events += map(self._in_run_time, self.executors.update(now))
            self._follow_replicas(now)
        if now < self._watched + WATCH_S:
            return
        self._watched = now
        self._events += map(
            self._in_run_time, self._ingests.take_progress(self._starter.queries, now)
        )
        self._events += map(self._in_run_time, self._late_in_spark(now))
        for event in self._supervisor.look():
            self._note(event)

    def _note(self, event: Event) -> None:
        """Keep an event that has a time of the wall clock, and report it at once."""
        event = self._in_run_time(replace(event, at=event.at + self._clock.shift_s))
        self._events.append(event)
        self._report(event)

    def _late_in_spark(self, now: float) -> Iterator[Event]:
        """Rows that came too late for operators whose state is Spark's own."""
        for name, lateness in self._lateness.items():
            query = self._starter.queries.get(name)
            if query is not None and (late := lateness.read_new(query.recentProgress)):
                yield self._followed[name].count_late(late, now)

    def _follow_replicas(self, now: float) -> None:
        """Let the executors follow the sum of what was asked for."""
        if self.executors is not None:
            replicas = sum(map(self._requested, self.pipeline.operators))
            self._events += map(self._in_run_time, self.executors.resize(replicas, now))

    def _second(self, at: float) -> float:
        """The second of the run at a time of its clock."""
        return round(max(0.0, self._before_s + at - self._began), 3)

    def _in_run_time(self, event: Event) -> Event:
        return replace(event, at=self._second(event.at))

    def _in_order(self) -> list[str]:
        """Operators in the order in which records meet them, ingest first, egress last."""
        others = [op for op in self.pipeline.operators.values() if not op.scales]
        return [
            *(operator.name for operator in others if not operator.reads),
            *self.topology.order,
            *(operator.name for operator in others if operator.reads),
        ]

    def _first_replicas(self, operator: Operator) -> int:
        return self._initial.get(operator.name, operator.options.replicas)

    def _running(self, name: str) -> int:
        return self._followed[name].running

    def _requested(self, name: str) -> int:
        one = self._followed.get(name)
        return one.requested if one else self._first_replicas(self.pipeline.operators[name])
