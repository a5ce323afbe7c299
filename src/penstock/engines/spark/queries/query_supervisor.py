"""Starts the queries of a run, a few at a time, and restarts those that failed."""

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from math import inf, isfinite

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from penstock.engines.events import Event, FailedEvent, RestartingEvent
from penstock.engines.spark.io.call_marker import find_deadliest, read_marks, read_stack
from penstock.engines.spark.queries import failures
from penstock.engines.spark.queries.causes import Cause, find_cause
from penstock.engines.spark.queries.failures import Failure
from penstock.engines.spark.queries.query_status import is_starting
from penstock.engines.spark.queries.retries import MAX_SAME, FailureSeries, Rows, count_failure
from penstock.engines.spark.run_layout import RunLayout
from penstock.errors import InputError

_LOG = logging.getLogger(__name__)
#: Queries that may start at once. Spark gives the process of a source ten seconds to start, which
#: no setting changes. On a busy machine that is too short if many start together.
MAX_STARTING = 2 * (os.cpu_count() or 1)
#: Seconds between two messages about operators that are still starting.
SAY_EVERY_S = 15.0

#: Returns the next batch of an operator, and the rows that it reads.
Position = Callable[[str], tuple[int, Rows]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The call that starts a query, and options of its operator."""

    start: Callable[[], StreamingQuery]
    #: Time limit of one call of its function.
    call_timeout_s: float | None = None
    #: Whether rows on which the function fails go to an error topic.
    keeps_letters: bool = False


class QuerySupervisor:
    """The queries of a run. A restarted query continues from its checkpoint."""

    def __init__(
        self,
        layout: RunLayout,
        retry_for_s: float = inf,
        *,
        say: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Failures that the user's code did not cause are retried for `retry_for_s`."""
        self._layout, self._retry_for_s, self._say, self._clock = layout, retry_for_s, say, clock
        self._starts: dict[str, Start] = {}
        self._series: dict[str, FailureSeries] = {}
        #: By operator: monotonic clock of its last start.
        self._started_at: dict[str, float] = {}
        #: The newest query of each operator.
        self.queries: dict[str, StreamingQuery] = {}
        #: Operators that were stopped on purpose and will be resumed.
        self._paused: set[str] = set()
        #: Operators that stopped for good, with the reason.
        self.failed: dict[str, str] = {}

    def add(
        self,
        operator: str,
        start: Callable[[], StreamingQuery],
        *,
        call_timeout_s: float | None = None,
        keeps_letters: bool = False,
    ) -> None:
        """Add a query for `start`."""
        self._starts[operator] = Start(
            start=start, call_timeout_s=call_timeout_s, keeps_letters=keeps_letters
        )

    def start(self) -> None:
        """Start all queries, the last added one first."""
        began = reported_at = self._clock()
        for operator in reversed(self._starts):
            while not self.can_start:
                time.sleep(0.05)
                if self._clock() - reported_at > SAY_EVERY_S:
                    reported_at = self._clock()
                    self._say(format_waiting(self.starting_names, reported_at - began))
            self._start(operator)

    def _start(self, operator: str) -> None:
        self._started_at[operator] = self._clock()
        self.queries[operator] = self._starts[operator].start()

    @property
    def starting_names(self) -> list[str]:
        """Operators whose sources are still starting."""
        return [name for name, query in self.queries.items() if is_starting(query)]

    @property
    def can_start(self) -> bool:
        """Whether another query may start now."""
        return len(self.starting_names) < MAX_STARTING

    @property
    def restarting(self) -> dict[str, FailureSeries]:
        """Operators that stopped and wait for their restart."""
        return {
            name: series
            for name, series in self._series.items()
            if name not in self.failed and series.due > self._started_at.get(name, -inf)
        }

    # --- queries that fail

    def watch(self, position: Position) -> list[Event]:
        """Restart queries that failed; return events with wall-clock times."""
        events: list[Event] = []
        for name in list(self.queries):
            if name not in self.failed and name not in self._paused:
                events += self._handle_exit(name, position)
        return events

    def _handle_exit(self, name: str, position: Position) -> list[Event]:
        if self.queries[name].isActive:
            return []
        if name in self.restarting:
            return self._restart(name)
        error = self.queries[name].exception()
        if error is None:
            return []
        return self._handle_failure(name, error, *position(name))

    def _handle_failure(
        self, name: str, error: StreamingQueryException | Exception, batch: int, rows: Rows
    ) -> list[Event]:
        cause = find_cause(str(error))
        task_failure = failures.load(self._layout, name)
        signature = (
            repr(failures.make_signature(task_failure.trace)) if task_failure else cause.signature
        )
        series = count_failure(
            self._series.get(name),
            batch=batch,
            rows=rows,
            signature=signature,
            reason=task_failure.trace.strip().splitlines()[-1] if task_failure else cause.message,
            now=self._clock(),
            started_at=self._started_at.get(name, -inf),
        )
        self._series[name] = series
        failure = self._find_user_failure(name, cause, task_failure, series)
        if failure is not None:
            return [self._give_up(name, failure.text(name), series, failure)]
        lasted_s = series.due - series.since
        if name not in self._starts or lasted_s > self._retry_for_s:
            text = f"{name} was given up after {series.tries} tries: {series.reason}"
            return [self._give_up(name, f"{text}\n{cause.detail}".strip(), series)]
        return [self._build_restart_event(name, series), *self._restart(name)]

    def _find_user_failure(
        self, name: str, cause: Cause, task_failure: Failure | None, series: FailureSeries
    ) -> Failure | None:
        """Return a failure that repeats on the same rows; None if a restart may help."""
        if task_failure is not None:
            return task_failure if max(task_failure.times, series.same) >= MAX_SAME else None
        if cause.is_crash:
            return self._find_crash(name)
        if cause.is_network and not series.rows:  # an ingest waits for its network
            return None
        if cause.is_users and series.same >= MAX_SAME:
            topic, first, end = series.rows[0] if series.rows else ("", 0, 0)
            trace = cause.traceback or cause.message
            return Failure(topic=topic, first=first, end=end, trace=trace, times=series.same)
        return None

    def _find_crash(self, name: str) -> Failure | None:
        """Return the failure of rows on which a worker died repeatedly; None if there are none."""
        mark, start = find_deadliest(read_marks(self._layout, name)), self._starts.get(name)
        if mark is None or mark.deaths + 1 < MAX_SAME or (start and start.keeps_letters):
            return None
        stack, limit_s = read_stack(self._layout, name), start.call_timeout_s if start else None
        where = failures.format_rows(mark.topic, mark.first, mark.end)
        problem = (
            f"call of {name} took longer than {limit_s:g} s on {where}"
            if limit_s is not None and stack
            else f"worker process died while processing {where} in operator {mark.member or name}"
        )
        return Failure(
            topic=mark.topic,
            first=mark.first,
            end=mark.end,
            trace=stack,
            times=mark.deaths + 1,
            problem=f"{problem} ({mark.deaths + 1} times)",
            member=mark.member,
        )

    def _build_restart_event(self, name: str, series: FailureSeries) -> RestartingEvent:
        _LOG.info("query %s restarts, try %d: %s", name, series.tries, series.reason)
        return RestartingEvent(
            at=time.time(),
            operator=name,
            tries=series.tries,
            delay_s=round(max(0.0, series.due - self._clock()), 3),
            since_s=round(self._clock() - series.since, 3),
            retry_for_s=self._retry_for_s if isfinite(self._retry_for_s) else None,
            error=series.reason,
        )

    def _give_up(
        self, name: str, text: str, series: FailureSeries, failure: Failure | None = None
    ) -> FailedEvent:
        self.failed[name] = text
        rows = failure if failure is not None and failure.topic else None
        return FailedEvent(
            at=time.time(),
            operator=name,
            error=text,
            tries=series.tries,
            is_users=failure is not None,
            topic=rows.topic if rows else None,
            first_offset=rows.first if rows else None,
            end_offset=rows.end if rows else None,
        )

    def _restart(self, name: str) -> list[Event]:
        """Start a query whose delay is over, unless too many others are starting."""
        series = self._series[name]
        if self._clock() < series.due or not self.can_start or name not in self._starts:
            return []
        try:
            self._start(name)
        except InputError as error:
            return [self._give_up(name, str(error), series)]
        except (PySparkException, Py4JJavaError) as error:
            # such as a query that has not quite ended
            return self._handle_failure(name, error, series.batch, series.rows)
        return []

    # --- queries that are stopped on purpose

    def pause(self, operator: str) -> None:
        """Stop a query until `resume`."""
        self._paused.add(operator)
        self.queries[operator].stop()

    def resume(self, operator: str) -> None:
        """Start a query that is paused or has ended."""
        if not self.queries[operator].isActive:
            self._start(operator)
        self._paused.discard(operator)

    def give_up(self, operator: str, reason: str) -> None:
        """Mark a paused query as failed for good."""
        self.failed[operator] = reason

    @property
    def is_over(self) -> bool:
        """Whether an operator has failed and no query runs any more."""
        return bool(self.failed) and not any(query.isActive for query in self.queries.values())

    def close(self) -> None:
        """Restart no query from now on."""
        self._starts.clear()


def format_waiting(names: list[str], seconds: float) -> str:
    """Return the message about operators that are still starting.

    >>> format_waiting(["parse", "enrich"], 45.2)
    'waiting for 2 operators to start: parse, enrich (45 s)'
    >>> format_waiting(["parse"], 15)
    'waiting for 1 operator to start: parse (15 s)'
    """
    count = f"{len(names)} operator{'s' if len(names) != 1 else ''}"
    return f"waiting for {count} to start: {', '.join(names)} ({seconds:.0f} s)"
