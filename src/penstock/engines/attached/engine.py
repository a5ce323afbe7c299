"""The engine port on an application that Penstock did not start: observes it, asks for executors.

Nothing here stops or changes a query.
"""

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from penstock.core.frozen_dict import FrozenDict
from penstock.core.snapshot import Snapshot
from penstock.core.topology import Topology
from penstock.engines.attached.application import Application, FollowedQuery
from penstock.engines.attached.executor_level import ExecutorLevel
from penstock.engines.attached.executor_shares import split_executors
from penstock.engines.attached.idle_executors import IdleExecutors
from penstock.engines.attached.query_follower import QueryFollower
from penstock.engines.attached.query_tracker import QueryTracker
from penstock.engines.events import Event, FailedEvent
from penstock.engines.microbatch.snapshot_builder import build_status
from penstock.engines.port import Capabilities, Plan, Status, check_plan
from penstock.errors import NotReadyError, RescaleError

#: Seconds between two looks at the application; the second one while executors are to be
#: released, which is done between two batches.
LOOK_S, CLOSE_LOOK_S = 3.0, 0.2
#: How long executors that were sent home may take to become idle when the run ends.
LEAVE_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachedTiming:
    """Times of an attached engine."""

    #: The age that rows may have when they are processed.
    freshness_s: float
    #: What a snapshot looks back on.
    window_s: float = 60.0

    def allowed_batch_s(self, trigger_s: float | None) -> float:
        """Return how long batches may take: the trigger interval, or half of the freshness.

        A row waits for the batch before its own, so two batches must fit into the freshness.

        >>> timing = AttachedTiming(freshness_s=30.0)
        >>> timing.allowed_batch_s(10.0), timing.allowed_batch_s(None)
        (10.0, 15.0)
        """
        return trigger_s or self.freshness_s / 2


class AttachedEngine:
    """Follows the queries of an application; the level of executors may change their number."""

    def __init__(
        self,
        application: Application,
        level: ExecutorLevel,
        *,
        timing: AttachedTiming,
        clock: Callable[[], float],
        ends_with_queries: bool,
    ) -> None:
        """`ends_with_queries` if it is over when the queries of now have ended."""
        self._application, self._level, self._timing = application, level, timing
        self._clock, self._ends_with_queries = clock, ends_with_queries
        self._began = self._updated_at = clock()
        self._followers: dict[str, QueryFollower] = {}
        self._events: list[Event] = []
        self._idle = IdleExecutors()
        self._wake = threading.Event()
        #: Sums over queries that have ended.
        self._past_offered = self._past_taken = 0
        self._past_replica_s: dict[str, float] = {}
        #: Queries that a status has named: what ends before that is not part of the run.
        self._reported: set[str] = set()
        self._is_over = self._has_looked = False
        self._alive = level.alive
        self._level.begin(self._began)

    # --- the port

    @property
    def capabilities(self) -> Capabilities:
        """Executors change; queries are left alone."""
        return Capabilities(has_executors=self._level.can_act)

    def advance(self, seconds: float) -> None:
        """Wait, and look at the application meanwhile."""
        until = self._clock() + seconds
        while (left := until - self._clock()) > 0 and not self._is_over:
            look_s = CLOSE_LOOK_S if self._level.is_releasing else LOOK_S
            if self._wake.wait(min(left, look_s)):
                return
            self._look()

    def _look(self) -> None:
        """Update; an error of Spark is reported, and the next look tries again."""
        try:
            self.update()
        except Exception as error:
            now = self._clock()
            text = (str(error).strip().splitlines() or [type(error).__name__])[0]
            self._add_events([FailedEvent(at=now, error=f"cannot look at Spark: {text}")])
            self._is_over = not self._application.is_alive()

    def wake(self) -> None:
        """Let `advance` return at once, now and from now on."""
        self._wake.set()

    def leave(self) -> None:
        """End executors that were sent home, if they are idle soon; change nothing else."""
        until = self._clock() + LEAVE_S
        while self._level.has_leaving and self._clock() < until and self._application.is_alive():
            self._level.finish_release()
            time.sleep(CLOSE_LOOK_S)

    def observe(self) -> Snapshot:
        """Return what was measured over the last window, one operator for each query."""
        ready = {name: f for name, f in self._followers.items() if f.tracker.progress}
        if not ready:
            what = "no batch has ended yet" if self._followers else "no query is active"
            raise NotReadyError(what)
        now = self._updated_at
        operators = {name: follower.observe(now) for name, follower in ready.items()}
        self._level.note_busy({name: operator.busy for name, operator in operators.items()})
        offered = {name: follower.tracker.offered_rate for name, follower in ready.items()}
        return Snapshot(
            at=self._second(now),
            offered=FrozenDict({name: rate for name, rate in offered.items() if rate is not None}),
            operators=FrozenDict(operators),
        )

    def apply(self, plan: Plan) -> None:
        """Request executors for the shares of a plan."""
        if not self._level.can_act:
            raise RescaleError(self._level.why_not)
        maximum = self._level.bounds[1]
        check_plan(plan, dict.fromkeys(self._followers, maximum), self.capabilities)
        now = self._clock()
        for name, share in plan.replicas.items():
            self._followers[name].tracker.operator.request(share, now)
        self._add_events(self._level.resize(self._requested_shares(), now))

    def status(self) -> Status:
        """Return shares and counts, and the events and batches since the last call."""
        trackers = {name: follower.tracker.operator for name, follower in self._followers.items()}
        topology = Topology.of(dict.fromkeys(trackers, ()))
        at = self._second(self._updated_at)
        status = build_status(trackers, topology, (), at=at, second=self._second)
        self._reported.update(trackers)
        events, self._events = tuple(sorted(self._events, key=lambda event: event.at)), []
        for operator in trackers.values():
            operator.clear_new()
        inputs = {name: follower.describe_input() for name, follower in self._followers.items()}
        return replace(
            status,
            executors=self._level.alive,
            executors_requested=self._level.requested,
            executor_s=round(self._level.executor_s, 3),
            replica_s=FrozenDict({**self._past_replica_s, **status.replica_s}),
            offered_records=status.offered_records + self._past_offered,
            processed_records=status.processed_records + self._past_taken,
            ingests=FrozenDict(inputs),
            events=events,
            is_over=self._is_over,
        )

    # --- looking

    def update(self) -> None:
        """Read what is new; request and release executors as the last plan says."""
        now = self._clock()
        passed_s, self._updated_at = now - self._updated_at, now
        if not self._application.is_alive():
            self._is_over = True
            return
        self._follow_new(now)
        for follower in list(self._followers.values()):
            operator = follower.tracker.operator
            operator.replica_s += operator.running * passed_s
            self._add_events(follower.read(now))
            if not follower.query.is_active():
                self._end(follower, now)
        if not self._has_looked:
            self._forget_history()
        self._judge(now)
        self._is_over = self._ends_with_queries and not self._followers
        is_between = not any(f.is_working and not f.has_batch for f in self._followers.values())
        self._add_events(self._level.update(self._requested_shares(), now, is_between=is_between))
        self._assign(now)

    def _forget_history(self) -> None:
        """Leave batches before the run out of its counts; its first measures still need them."""
        self._has_looked = True
        for follower in self._followers.values():
            operator = follower.tracker.operator
            self._past_offered -= operator.taken
            self._past_taken -= operator.taken
            operator.rows_in = 0
            operator.clear_new()

    def _follow_new(self, now: float) -> None:
        for query in self._application.find_queries():
            if query.name not in self._followers:
                self._followers[query.name] = QueryFollower(query, self._make_tracker(query))
                self._rebalance(now)

    def _make_tracker(self, query: FollowedQuery) -> QueryTracker:
        return QueryTracker(
            name=query.name,
            window_s=self._timing.window_s,
            batch_s=self._timing.allowed_batch_s(query.trigger_s),
            max_executors=self._level.bounds[1],
            executors=max(1, self._level.alive),
            cores=self._application.cores,
            make_counter=query.make_counter,
        )

    def _rebalance(self, now: float) -> None:
        """Share the executors out again, because there are other queries."""
        shares = split_executors(max(1, self._level.alive), self._requested_shares())
        is_alone = len(shares) == 1
        for name, share in shares.items():
            operator = self._followers[name].tracker.operator
            operator.min_replicas = min(self._level.bounds[0], share) if is_alone else 1
            operator.request(share, now)
            operator.requested_at = None  # no decision asked for it, so none is awaited

    def _judge(self, now: float) -> None:
        """Report why more executors will not help the queries that had a batch."""
        has_batch = any(follower.has_batch for follower in self._followers.values())
        if not has_batch:
            return
        self._idle.update(self._application.count_tasks(), has_batch=has_batch)
        for follower in self._followers.values():
            if follower.has_batch:
                events = follower.judge(
                    now,
                    idle_executors=len(self._idle.find()),
                    locality_wait_s=self._application.locality_wait_s,
                )
                self._add_events(events)

    def _end(self, follower: QueryFollower, now: float) -> None:
        operator = self._followers.pop(follower.query.name).tracker.operator
        self._past_offered += operator.offered
        self._past_taken += operator.taken
        if operator.name in self._reported:
            self._past_replica_s[operator.name] = round(operator.replica_s, 3)
        self._add_events([follower.end(now)])
        self._rebalance(now)

    def _assign(self, now: float) -> None:
        """Give each query its share of the executors that are there.

        All queries use all executors, so another number of them is judged for every query.
        """
        before, self._alive = self._alive, self._level.alive
        for name, share in self._level.assign(self._requested_shares()).items():
            tracker = self._followers[name].tracker
            if before != self._alive:
                tracker.begin_probation(before, self._alive, now)
            tracker.share(share)
            tracker.operator.is_changing = not self._level.is_settled
            if not self._level.can_act:
                tracker.operator.requested = tracker.operator.running = share

    def _requested_shares(self) -> Mapping[str, int]:
        return {name: f.tracker.operator.requested for name, f in self._followers.items()}

    # --- time

    def _second(self, at: float) -> float:
        return round(max(0.0, at - self._began), 3)

    def _add_events(self, events: Iterable[Event]) -> None:
        self._events += [replace(event, at=self._second(event.at)) for event in events]
