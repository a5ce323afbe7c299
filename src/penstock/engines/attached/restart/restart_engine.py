"""The engine port on queries of factories: a replica is a partition, and a change a restart."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from penstock.engines.attached.application import FollowedQuery
from penstock.engines.attached.engine import AttachedEngine, AttachedTiming
from penstock.engines.attached.executor_level import ExecutorLevel
from penstock.engines.attached.query_tracker import QueryTracker
from penstock.engines.attached.restart.elastic_application import ElasticApplication
from penstock.engines.attached.restart.restart_level import RestartLevel
from penstock.engines.port import Capabilities, Plan, Status, check_plan
from penstock.engines.query_events import PartitionsChangedEvent, PartitionsRestoredEvent
from penstock.errors import RescaleError

#: How long a change in progress may take when the run ends.
FINISH_S = 25.0


class RestartEngine(AttachedEngine):
    """Starts queries again with other numbers of partitions; executors are only counted."""

    def __init__(
        self,
        application: ElasticApplication,
        level: ExecutorLevel,
        partitions: RestartLevel,
        *,
        timing: AttachedTiming,
        clock: Callable[[], float],
        acts: bool,
    ) -> None:
        """`acts` if queries may be started again."""
        super().__init__(application, level, timing=timing, clock=clock, ends_with_queries=True)
        self._partitions, self._queries = partitions, application.queries
        self._acts, self._has_begun, self._pause_s = acts, False, 0.0
        self._shown = {name: m.elastic.partitions for name, m in partitions.members.items()}

    @property
    def capabilities(self) -> Capabilities:
        """Queries pause while they change."""
        return Capabilities(pauses=frozenset(self._partitions.members))

    def apply(self, plan: Plan) -> None:
        """Begin to start queries with the partitions of a plan."""
        if not self._acts:
            raise RescaleError("no query is started again")
        members = self._partitions.members
        check_plan(plan, dict.fromkeys(members), self.capabilities)
        for name, wanted in plan.replicas.items():
            self._partitions.request(name, wanted)
            self._followers[name].tracker.operator.request(wanted, self._clock())

    def status(self) -> Status:
        """Return the status, with the seconds for which queries did not run."""
        return replace(super().status(), pause_s=round(self._pause_s, 3))

    def leave(self) -> None:
        """Wait for a change in progress, so that its query runs; change nothing else."""
        self._partitions.finish(FINISH_S)

    # --- looking

    def update(self) -> None:
        """Read what is new, and the events of changes."""
        if self._acts and not self._has_begun:
            self._has_begun = True
            self._partitions.begin()
        for name, query in self._queries.items():
            query.is_changing = self._partitions.is_busy(name)
        super().update()
        events = self._partitions.take_events()
        for event in events:
            if isinstance(event, PartitionsChangedEvent | PartitionsRestoredEvent):
                self._pause_s += event.pause_s
        self._add_events(events)

    def _make_tracker(self, query: FollowedQuery) -> QueryTracker:
        partitions = self._partitions.members[query.name].elastic.partitions
        tracker = super()._make_tracker(query)
        tracker.slots = self._slots
        tracker.cores = 1
        tracker.share(partitions)
        operator = tracker.operator
        operator.requested = operator.running = partitions
        return tracker

    @property
    def _slots(self) -> int:
        """Tasks that can run at once."""
        return max(1, self._level.alive) * self._application.cores

    def _rebalance(self, now: float) -> None:
        """Nothing: queries do not share partitions."""

    def _assign(self, now: float) -> None:
        """Note how many partitions each query was started with."""
        for name, follower in self._followers.items():
            member, tracker = self._partitions.members[name], follower.tracker
            is_busy, partitions = self._partitions.is_busy(name), member.elastic.partitions
            tracker.slots, operator = self._slots, tracker.operator
            operator.is_changing = is_busy
            operator.min_replicas, operator.max_replicas = member.low, member.high
            tracker.share(partitions)
            before = self._shown[name]
            if not is_busy and before != partitions:
                self._shown[name] = partitions
                tracker.begin_probation(before, partitions, now)
            if not is_busy and operator.requested != partitions:  # adopted or restored
                operator.requested, operator.requested_at = partitions, None

    def _requested_shares(self) -> Mapping[str, int]:
        return {}
