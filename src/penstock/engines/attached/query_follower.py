"""Follows one query: reads its reports, and judges whether more executors help it."""

from penstock.core.snapshot import OperatorSnapshot
from penstock.engines.attached.application import FollowedQuery
from penstock.engines.attached.query_facts import gather_facts
from penstock.engines.attached.query_snapshot import build_query_snapshot, describe_backlog
from penstock.engines.attached.query_tracker import QueryTracker
from penstock.engines.attached.verdicts import Culprit, ScalingVerdict, judge
from penstock.engines.events import Event
from penstock.engines.port import IngestStatus
from penstock.engines.query_events import (
    ExecutorEffectEvent,
    QueryEndedEvent,
    QueryStartedEvent,
    VerdictEvent,
)

#: Judgements, each after at least one batch, that must agree before a verdict holds.
CONFIRMED_AFTER = 3


class QueryFollower:
    """A query of the application with what is known of it."""

    def __init__(self, query: FollowedQuery, tracker: QueryTracker) -> None:
        self.query, self.tracker = query, tracker
        self.is_working = True
        #: Whether the last `read` brought a batch.
        self.has_batch = False
        self.verdicts: tuple[ScalingVerdict, ...] = ()
        self._effect: ExecutorEffectEvent | None = None
        self._is_announced = False
        self._announced: set[Culprit] = set()
        #: How often each verdict was reached without a break.
        self._counts: dict[Culprit, int] = {}

    def read(self, now: float) -> list[Event]:
        """Read new reports; return events."""
        query, tracker = self.query, self.tracker
        self.has_batch = False
        for report in query.read_new():
            self.has_batch |= tracker.take(report.progress, report.facts)
        self.is_working = query.is_working()
        events = tracker.update(now, is_working=self.is_working)
        for event in events:
            if isinstance(event, ExecutorEffectEvent):
                self._effect = event
        return [*self._announce(now), *events]

    def _announce(self, now: float) -> list[Event]:
        """Report once that the query is followed, when its sources are known."""
        if self._is_announced or not self.tracker.sources:
            return []
        self._is_announced = True
        backlog, query = describe_backlog(self.tracker), self.query
        return [
            QueryStartedEvent(at=now, operator=query.name, query_id=query.query_id, backlog=backlog)
        ]

    def judge(
        self, now: float, *, idle_executors: int, locality_wait_s: float | None
    ) -> list[Event]:
        """Judge whether more executors help; return an event for each new reason why not."""
        facts = gather_facts(
            self.tracker,
            effect=self._effect,
            idle_executors=idle_executors,
            locality_wait_s=locality_wait_s,
        )
        # while executors are new, batches say nothing about the time after
        self.verdicts = () if self.tracker.probation is not None else self._confirm(judge(facts))
        new = [verdict for verdict in self.verdicts if verdict.culprit not in self._announced]
        self._announced.update(verdict.culprit for verdict in new)
        return [
            VerdictEvent(
                at=now,
                operator=self.tracker.name,
                culprit=str(verdict.culprit),
                evidence=verdict.evidence,
                advice=verdict.advice,
                unit=self.tracker.unit,
            )
            for verdict in new
        ]

    def _confirm(self, verdicts: tuple[ScalingVerdict, ...]) -> tuple[ScalingVerdict, ...]:
        """Return the verdicts that hold for some batches: one slow batch proves nothing."""
        counts = {verdict.culprit: self._counts.get(verdict.culprit, 0) + 1 for verdict in verdicts}
        self._counts = counts
        return tuple(verdict for verdict in verdicts if counts[verdict.culprit] >= CONFIRMED_AFTER)

    def end(self, now: float) -> Event:
        """Return the event of its end."""
        return QueryEndedEvent(at=now, operator=self.query.name, error=self.query.read_error())

    def observe(self, now: float) -> OperatorSnapshot:
        """Return what was measured over the last window."""
        return build_query_snapshot(
            self.tracker, now, is_working=self.is_working, verdicts=self.verdicts
        )

    def describe_input(self) -> IngestStatus:
        """Return what its sources have read, and what waits."""
        tracker, sources = self.tracker, self.tracker.sources
        units = {source.unit for source in sources}
        rate, is_known = tracker.offered_rate, tracker.has_backlog
        amounts = [source.backlog or 0.0 for source in sources]
        rows = tracker.operator.offered - tracker.operator.taken
        return IngestStatus(
            rows=tracker.operator.rows_in,
            rows_per_s=None if rate is None else round(rate, 3),
            backlog=sum(amounts) if is_known and len(units) == 1 else None,
            unit=units.pop() if is_known and len(units) == 1 else "",
            backlog_rows=rows if is_known else None,
        )
